// The ground of a drawing over time: its rows have a name at the left, and all drawings of a page the same axis.

import { useEffect, useRef, useState, type ReactNode } from 'react'
import { useText } from '@/text'
import { formatTime } from '@/text/format'
import { Icon } from './icons'
import { scaleOf, ticksOf, type Scale } from './timescale'

const DAY = 86_400_000

/** A time on an axis or in its table. */
export function clockOf(time: number, seconds = false): string {
  return formatTime(new Date(time).toISOString(), seconds ? 'seconds' : 'short')
}

interface Props {
  from: number
  now: number
  height: number
  /** What it shows, in a sentence. */
  label: string
  /** Height of the axis with its times; without it there are lines only. */
  axis?: number
  children: (scale: Scale) => ReactNode
}

export function TimeDrawing({ from, now, height, label, axis, children }: Props) {
  const text = useText()
  const { element, width } = useWidth()
  const scale = scaleOf(from, now, width)
  // A tick of another day has its date.
  const room = now - from > DAY ? 150 : 110
  const ticks = ticksOf(from, now, Math.max(2, Math.floor((width - scale.left) / room)))
  const top = axis ?? 0
  return (
    <div ref={element} className="timeline">
      {width === 0 ? null : (
        <svg
          className="wan"
          width={width}
          height={height}
          viewBox={`0 0 ${width} ${height}`}
          role="img"
          aria-label={label}
        >
          {ticks.map((tick) => (
            <g key={tick}>
              <path className="grid" d={`M${scale.x(tick)} ${axis === undefined ? 0 : 20}V${height}`} />
              {axis !== undefined && scale.x(tick) < width - room ? (
                <text x={scale.x(tick)} y="12" textAnchor="middle">
                  {clockOf(tick)}
                </text>
              ) : null}
            </g>
          ))}
          {children(scale)}
          {axis === undefined ? null : (
            <>
              <path className="now" d={`M${width - 0.5} ${top - 16}V${height}`} />
              <text x={width} y="12" textAnchor="end">
                {text.common.nowAt(clockOf(now))}
              </text>
            </>
          )}
        </svg>
      )}
    </div>
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

interface NameProps {
  top: number
  name: string
  sub: string | null
  scale: Scale
}

/** The name of a row, and below it what belongs to it. */
export function RowName({ top, name, sub, scale }: NameProps) {
  const most = scale.narrow ? 13 : 24
  // Of several words those are left out that have no room.
  const cut = (words: string): string => {
    if (words.length <= most) return words
    const comma = words.lastIndexOf(', ')
    return comma > 0 ? cut(words.slice(0, comma)) : `${words.slice(0, most - 1)}…`
  }
  return (
    <>
      <text className="nm" x="0" y={top + (sub ? 15 : 22)}>
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

/** Changes between a drawing and its table. */
export function TableSwitch({ table, onChange }: { table: boolean; onChange: (table: boolean) => void }) {
  const text = useText()
  return (
    <button type="button" className="link" aria-pressed={table} onClick={() => onChange(!table)}>
      <Icon name="table" />
      {table ? text.common.showAsChart : text.common.showAsTable}
    </button>
  )
}
