// Queries over time, blocked ones at the foot of each bar. What the list below covers is marked; a drag chooses a range.

import { useRef, useState } from 'react'
import { Table } from '@/components/table'
import { useText } from '@/text'
import { formatNumber, formatTime } from '@/text/format'
import { brushed, gapsOf, type Counts, type Histogram } from './histogram'

interface Props {
  histogram: Histogram
  /** The time that the list covers, in milliseconds. */
  covered: { from: number; to: number } | null
  /** Filters are set: of all queries only some are in the list. */
  narrowed: boolean
  /** The chart ends now. */
  open: boolean
  onChange: (from: string, to: string | undefined) => void
}

const WIDTH = 1168
const HEIGHT = 56
/** A gap that is narrower has no room for its words. */
const WORDS = 52

export function Brush({ histogram, covered, narrowed, open, onChange }: Props) {
  const text = useText()
  const { log } = text.dns
  const box = useRef<SVGSVGElement>(null)
  const [drag, setDrag] = useState<[number, number] | null>(null)
  const [table, setTable] = useState(false)
  const { steps, most } = histogram
  const share = (x: number) => {
    const rect = box.current?.getBoundingClientRect()
    return rect && rect.width > 0 ? (x - rect.left) / rect.width : 0
  }
  const marked = drag ? brushed(histogram, ...drag) : covered
  const clock = (time: number) => formatTime(new Date(time).toISOString())
  const sum = (value: (counts: Counts) => number) =>
    steps.reduce((total, each) => total + value(each.all ?? each.loaded), 0)
  const choose = (one: number, other: number) => {
    const range = brushed(histogram, one, other)
    const untilNow = open && range.to >= histogram.to
    onChange(new Date(range.from).toISOString(), untilNow ? undefined : new Date(range.to).toISOString())
  }
  return (
    <figure className="brush">
      <svg
        ref={box}
        className="chart brush__plot"
        viewBox={`0 0 ${WIDTH} ${HEIGHT + 1}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={log.chart(
          clock(histogram.from),
          clock(histogram.to),
          sum((each) => each.queries),
          sum((each) => each.blocked),
          most,
        )}
        onPointerDown={(event) => {
          if (event.button !== 0) return
          event.preventDefault()
          event.currentTarget.setPointerCapture(event.pointerId)
          const place = share(event.clientX)
          setDrag([place, place])
        }}
        onPointerMove={(event) => {
          if (drag) setDrag([drag[0], share(event.clientX)])
        }}
        onPointerUp={(event) => {
          if (drag) choose(drag[0], share(event.clientX))
          setDrag(null)
        }}
        onPointerCancel={() => setDrag(null)}
      >
        <Bars histogram={histogram} marked={marked} narrowed={narrowed} />
      </svg>
      <GapWords histogram={histogram} />
      <figcaption className="brush__foot">
        <span>{clock(histogram.from)}</span>
        <span className="brush__hint">
          {narrowed ? log.brushNarrowed : log.brushHint}{' '}
          <button type="button" className="link" aria-expanded={table} onClick={() => setTable(!table)}>
            {text.common.showAsTable}
          </button>
        </span>
        <span>{open ? text.common.now : clock(histogram.to)}</span>
      </figcaption>
      {table ? <Steps histogram={histogram} clock={clock} onChange={onChange} /> : null}
    </figure>
  )
}

interface BarsProps {
  histogram: Histogram
  marked: { from: number; to: number } | null
  narrowed: boolean
}

/** The bars, and the range that is marked below them. */
function Bars({ histogram, marked, narrowed }: BarsProps) {
  const { steps, most, step } = histogram
  const width = WIDTH / steps.length
  const span = histogram.to - histogram.from
  const xOf = (time: number) => Math.min(WIDTH, Math.max(0, ((time - histogram.from) / span) * WIDTH))
  return (
    <>
      {marked ? (
        <rect
          className="c-sel"
          x={xOf(marked.from)}
          y="0"
          width={xOf(marked.to) - xOf(marked.from)}
          height={HEIGHT}
        />
      ) : null}
      {steps.map((each, index) => {
        const inside = marked !== null && each.start + step > marked.from && each.start < marked.to
        const bar = { x: index * width, width, most }
        const counts = narrowed && inside ? each.loaded : (each.all ?? each.loaded)
        return (
          <g key={each.start}>
            {narrowed && inside && each.all ? <Bar {...bar} counts={each.all} dim /> : null}
            <Bar {...bar} counts={counts} dim={!inside} />
          </g>
        )
      })}
      {gapsOf(steps).map(([first, end]) =>
        end - first > 1 ? (
          <path
            key={first}
            className="brush__gap"
            d={`M${first * width} 0V${HEIGHT}M${end * width} 0V${HEIGHT}`}
          />
        ) : null,
      )}
      <path className="c-base c-base--s" d={`M0 ${HEIGHT + 0.5}H${WIDTH}`} />
    </>
  )
}

function GapWords({ histogram: { steps } }: { histogram: Histogram }) {
  const text = useText()
  const width = WIDTH / steps.length
  return (
    <div className="brush__words" aria-hidden="true">
      {gapsOf(steps).map(([first, end]) =>
        (end - first) * width >= WORDS ? (
          <span
            key={first}
            style={{
              left: `${(first / steps.length) * 100}%`,
              width: `${((end - first) / steps.length) * 100}%`,
            }}
          >
            {text.common.noData}
          </span>
        ) : null,
      )}
    </div>
  )
}

interface StepsProps {
  histogram: Histogram
  clock: (time: number) => string
  onChange: Props['onChange']
}

/** The bars as a table, newest first; the time of each is a button that chooses it. */
function Steps({ histogram, clock, onChange }: StepsProps) {
  const text = useText()
  const { log } = text.dns
  const counted = histogram.steps.filter((each) => each.all !== null || each.loaded.queries > 0)
  const value = (count: number | undefined) =>
    count === undefined ? text.common.noData : formatNumber(count)
  return (
    <div className="timechart__table">
      <Table
        label={log.bars}
        rows={counted.reverse()}
        id={({ start }) => start}
        plain
        dense
        columns={[
          {
            head: log.columns.time,
            heading: true,
            cell: ({ start }) => (
              <button
                type="button"
                className="plainlink"
                onClick={() =>
                  onChange(new Date(start).toISOString(), new Date(start + histogram.step).toISOString())
                }
              >
                {clock(start)}
              </button>
            ),
          },
          { head: log.allQueries, numeric: true, cell: ({ all }) => value(all?.queries) },
          { head: log.statuses.blocked, numeric: true, cell: ({ all }) => value(all?.blocked) },
          { head: log.inList, numeric: true, cell: ({ loaded }) => value(loaded.queries) },
        ]}
      />
    </div>
  )
}

interface BarProps {
  x: number
  width: number
  most: number
  counts: Counts
  dim: boolean
}

function Bar({ x, width, most, counts, dim }: BarProps) {
  if (counts.queries === 0 || most === 0) return null
  const bar = Math.max(1, width - Math.min(2.7, width * 0.28))
  const height = (counts.queries / most) * (HEIGHT - 6)
  const foot = (counts.blocked / most) * (HEIGHT - 6)
  const shade = dim ? ' c-bar--dim' : ''
  const rest = height - foot - (foot > 0 ? 0.8 : 0)
  return (
    <>
      {rest > 0 ? (
        <rect className={`c-bar${shade}`} x={x} y={HEIGHT - height} width={bar} height={rest} />
      ) : null}
      {foot > 0 ? (
        <rect className={`c-bar c-bar--b${shade}`} x={x} y={HEIGHT - foot} width={bar} height={foot} />
      ) : null}
    </>
  )
}
