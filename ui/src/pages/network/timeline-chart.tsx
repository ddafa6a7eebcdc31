// The timeline of uplinks as a drawing, or as a table of its spans.

import { useEffect, useRef, useState } from 'react'
import { Icon } from '@/components/icons'
import { useText, type Text } from '@/text'
import { formatTime } from '@/text/format'
import { spread, ticksOf, type BandKind, type Timeline } from './timeline'

interface Props {
  timeline: Timeline
  from: number
  now: number
  /** Second line below the name of an uplink. */
  subOf: (uplink: string) => string | null
  /** What is added to the label of the present band. */
  noteOf: (uplink: string) => string | null
}

const CLASS: Record<BandKind, string> = {
  active: 'seg-ok',
  standby: 'seg-sb',
  degraded: 'seg-dg',
  offline: 'off',
  captive: 'seg-dg',
  held: 'seg-sb',
  disabled: 'seg-none',
  only: 'seg-sb',
}

/** Kinds whose label stands on a pattern and needs a ground. */
const PATTERNED: readonly BandKind[] = ['degraded', 'offline', 'captive']

const ROW = 40
const TOP = 42

export function TimelineChart(props: Props) {
  const text = useText()
  const [table, setTable] = useState(false)
  return (
    <figure className="timechart">
      <div className="legendbar">
        <Legend />
        <button type="button" className="link" aria-pressed={table} onClick={() => setTable(!table)}>
          <Icon name="table" />
          {table ? text.common.showAsChart : text.common.showAsTable}
        </button>
      </div>
      {table ? <SpanTable {...props} /> : <Drawing {...props} />}
    </figure>
  )
}

function Legend() {
  const text = useText()
  return (
    <span className="legend">
      {text.network.uplinks.legend.map((word, index) => (
        <span key={word}>
          <svg className="wan" viewBox="0 0 22 8" aria-hidden="true">
            <rect
              className={['seg-ok', 'seg-sb', 'seg-dg', 'off'][index]}
              x=".5"
              y=".5"
              width="21"
              height="7"
              rx="2"
            />
          </svg>
          {word}
        </span>
      ))}
    </span>
  )
}

/** Width of the element in pixels, so that text in the drawing keeps its size. */
function useWidth() {
  const element = useRef<HTMLDivElement>(null)
  const [width, setWidth] = useState(0)
  useEffect(() => {
    const box = element.current
    if (!box) return
    const observer = new ResizeObserver(() => setWidth(box.clientWidth))
    observer.observe(box)
    return () => observer.disconnect()
  }, [])
  return { element, width }
}

function Drawing({ timeline, from, now, subOf, noteOf }: Props) {
  const text = useText()
  const words = text.network.uplinks
  const { element, width } = useWidth()
  const narrow = width < 560
  const left = narrow ? 84 : 132
  const x = (time: number) => left + ((time - from) / (now - from)) * (width - left)
  const kernelTop = TOP + timeline.rows.length * ROW + 14
  const height = kernelTop + ROW - 4
  const changes = timeline.changes.filter(({ decision }) => Date.parse(decision.time) >= from)
  const places = changes.map(({ decision }) => x(Date.parse(decision.time)))
  const marks = spread(places, 18, left, width - 9)
  const ticks = ticksOf(from, now, Math.max(2, Math.floor((width - left) / 110)))
  const clock = (time: number) => formatTime(new Date(time).toISOString())
  return (
    <div ref={element} className="timeline">
      {width === 0 ? null : (
        <svg
          className="wan"
          width={width}
          height={height}
          viewBox={`0 0 ${width} ${height}`}
          role="img"
          aria-label={words.chart(clock(from), clock(now), changes.length)}
        >
          <Patterns />
          {ticks.map((tick) => (
            <g key={tick}>
              <path className="grid" d={`M${x(tick)} 34V${height - 4}`} />
              {x(tick) < width - 100 ? (
                <text x={x(tick)} y="12" textAnchor="middle">
                  {clock(tick)}
                </text>
              ) : null}
            </g>
          ))}
          {timeline.rows.map((row, index) => {
            const top = TOP + index * ROW
            return (
              <g key={row.uplink}>
                <Name
                  top={top}
                  name={row.uplink}
                  sub={row.configured ? subOf(row.uplink) : words.former}
                  narrow={narrow}
                />
                {row.spans.map((span) => (
                  <Band
                    key={`${span.from} ${span.kind}`}
                    x={x(span.from)}
                    width={x(span.to) - x(span.from)}
                    top={top}
                    kind={span.kind}
                    label={labelOf(span.kind, span.to === now ? noteOf(row.uplink) : null, text)}
                  />
                ))}
              </g>
            )
          })}
          <path className="grid" d={`M0 ${kernelTop - 11.5}H${width}`} />
          <Name top={kernelTop} name={words.kernel} sub={words.kernelSub} narrow={narrow} />
          {timeline.kernel.map((span) => {
            const wide = x(span.to) - x(span.from)
            return (
              <g key={span.from}>
                <rect
                  className="seg-k"
                  x={x(span.from) + 0.5}
                  y={kernelTop + 4.5}
                  width={Math.max(1, wide - 1)}
                  height="25"
                  rx="3"
                />
                {wide > span.uplink.length * 7 + 16 ? (
                  <text className="in" x={x(span.from) + 9} y={kernelTop + 21}>
                    {span.uplink}
                  </text>
                ) : null}
              </g>
            )
          })}
          {changes.map(({ number }, index) => (
            <g key={number}>
              <path className="mk" d={`M${places[index]} 40V${height - 4}`} />
              <path className="mk" d={`M${places[index]} 40L${marks[index]} 34`} />
              <circle className="mkc" cx={marks[index]} cy="28" r="8" />
              <text className="mkt" x={marks[index]} y="32">
                {number}
              </text>
            </g>
          ))}
          <path className="now" d={`M${width - 0.5} 26V${height - 4}`} />
          <text x={width} y="12" textAnchor="end">
            {words.nowAt(clock(now))}
          </text>
        </svg>
      )}
    </div>
  )
}

function Patterns() {
  return (
    <defs>
      <pattern id="hx" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
        <path className="hx" d="M0 0V6" strokeWidth="3" />
      </pattern>
      <pattern id="hoff" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(-45)">
        <path className="hoff" d="M0 0V6" strokeWidth="1" />
      </pattern>
    </defs>
  )
}

interface NameProps {
  top: number
  name: string
  sub: string | null
  narrow: boolean
}

function Name({ top, name, sub, narrow }: NameProps) {
  const most = narrow ? 12 : 22
  const cut = (word: string) => (word.length > most ? `${word.slice(0, most - 1)}…` : word)
  return (
    <>
      <text className="nm" x="0" y={top + 15}>
        <title>{name}</title>
        {cut(name)}
      </text>
      {sub ? (
        <text x="0" y={top + 29}>
          <title>{sub}</title>
          {cut(sub)}
        </text>
      ) : null}
    </>
  )
}

interface BandProps {
  x: number
  width: number
  top: number
  kind: BandKind
  label: { short: string; long: string }
}

function Band({ x, width, top, kind, label }: BandProps) {
  const room = width - 18 - (kind === 'held' ? 16 : 0)
  const size = (word: string) => word.length * 6.3
  const shown = size(label.long) < room ? label.long : size(label.short) < room ? label.short : null
  const start = x + 9 + (kind === 'held' ? 14 : 0)
  return (
    <g>
      <title>{label.long}</title>
      <rect
        className={CLASS[kind]}
        x={x + 0.5}
        y={top + 4.5}
        width={Math.max(1, width - 1)}
        height="25"
        rx="3"
      />
      {shown ? (
        <>
          {PATTERNED.includes(kind) ? (
            <rect className="lblbg" x={start - 5} y={top + 9} width={size(shown) + 10} height="16" rx="3" />
          ) : null}
          {kind === 'held' ? (
            <use className="pinu" href="#i-pin" x={x + 5} y={top + 11} width="12" height="12" />
          ) : null}
          <text className={kind === 'active' ? 'in' : 'inb'} x={start} y={top + 21}>
            {shown}
          </text>
        </>
      ) : null}
    </g>
  )
}

function labelOf(kind: BandKind, note: string | null, text: Text) {
  const short = text.network.uplinks.bands[kind]
  return { short, long: note === null ? short : `${short}, ${note}` }
}

/** The same as the drawing, in words. */
function SpanTable({ timeline, now }: Props) {
  const text = useText()
  const words = text.network.uplinks
  const { uplink, state, from, to } = words.spanTable
  const clock = (time: number) =>
    time === now ? text.common.now : formatTime(new Date(time).toISOString(), 'seconds')
  const rows = [
    ...timeline.rows.flatMap((row) =>
      row.spans.map((span) => ({ ...span, name: row.uplink, word: words.bands[span.kind] })),
    ),
    ...timeline.kernel.map((span) => ({
      ...span,
      name: `${words.kernel}, ${words.kernelSub}`,
      word: span.uplink,
    })),
  ]
  return (
    <table className="tbl tbl--card">
      <thead>
        <tr>
          <th scope="col">{uplink}</th>
          <th scope="col">{state}</th>
          <th scope="col">{from}</th>
          <th scope="col">{to}</th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={`${row.name} ${row.from}`}>
            <td className="med">{row.name}</td>
            <td data-l={state}>{row.word}</td>
            <td data-l={from} className="mono dim">
              {clock(row.from)}
            </td>
            <td data-l={to} className="mono dim">
              {clock(row.to)}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}
