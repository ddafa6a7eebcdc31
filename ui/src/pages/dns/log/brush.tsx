// Queries over time, blocked ones at the foot of each bar. A drag chooses a range.

import { useRef, useState } from 'react'
import { useText } from '@/text'
import { formatTime } from '@/text/format'
import { brushed, type Histogram } from './histogram'

interface Props {
  histogram: Histogram
  from?: string
  to?: string
  live: boolean
  onChange: (from: string | undefined, to: string | undefined) => void
}

const WIDTH = 1168
const HEIGHT = 56

export function Brush({ histogram, from, to, live, onChange }: Props) {
  const text = useText()
  const box = useRef<SVGSVGElement>(null)
  const [drag, setDrag] = useState<[number, number] | null>(null)
  const { steps, most, step } = histogram
  const share = (x: number) => {
    const rect = box.current?.getBoundingClientRect()
    return rect && rect.width > 0 ? (x - rect.left) / rect.width : 0
  }
  const span = histogram.to - histogram.from
  const placeOf = (time: number) => Math.min(WIDTH, Math.max(0, ((time - histogram.from) / span) * WIDTH))
  const chosen = drag ? brushed(histogram, ...drag) : null
  const start = chosen?.from ?? (from === undefined ? undefined : Date.parse(from))
  const end =
    chosen?.to ?? (to === undefined ? (from === undefined ? undefined : histogram.to) : Date.parse(to))
  const width = WIDTH / steps.length
  const bar = Math.max(1, width - Math.min(2.7, width * 0.28))
  const clock = (time: number) =>
    formatTime(new Date(time).toISOString(), step < 60_000 ? 'seconds' : 'short')
  const total = steps.reduce((sum, each) => sum + each.queries, 0)
  const blocked = steps.reduce((sum, each) => sum + each.blocked, 0)
  const choose = (one: number, other: number) => {
    const range = brushed(histogram, one, other)
    const open = range.to >= histogram.to && live
    onChange(new Date(range.from).toISOString(), open ? undefined : new Date(range.to).toISOString())
  }
  return (
    <figure className="brush">
      <svg
        ref={box}
        className="chart brush__plot"
        viewBox={`0 0 ${WIDTH} ${HEIGHT + 1}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={text.dns.log.chart(clock(histogram.from), clock(histogram.to), total, blocked, most)}
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
        {start !== undefined && end !== undefined ? (
          <rect
            className="c-sel"
            x={placeOf(start)}
            y="0"
            width={placeOf(end) - placeOf(start)}
            height={HEIGHT}
          />
        ) : null}
        {steps.map((each, index) => {
          const dim =
            start !== undefined && (each.start + step <= start || (end !== undefined && each.start >= end))
          const height = most > 0 ? (each.queries / most) * (HEIGHT - 6) : 0
          const foot = most > 0 ? (each.blocked / most) * (HEIGHT - 6) : 0
          const shade = dim ? ' c-bar--dim' : ''
          return each.queries === 0 ? null : (
            <g key={each.start}>
              {height > foot ? (
                <rect
                  className={`c-bar${shade}`}
                  x={index * width}
                  y={HEIGHT - height}
                  width={bar}
                  height={height - foot - (foot > 0 ? 0.8 : 0)}
                />
              ) : null}
              {foot > 0 ? (
                <rect
                  className={`c-bar c-bar--b${shade}`}
                  x={index * width}
                  y={HEIGHT - foot}
                  width={bar}
                  height={foot}
                />
              ) : null}
            </g>
          )
        })}
        <path className="c-base c-base--s" d={`M0 ${HEIGHT + 0.5}H${WIDTH}`} />
      </svg>
      <figcaption className="brush__foot">
        <span>{clock(histogram.from)}</span>
        <span className="brush__hint">{text.dns.log.brushHint}</span>
        <span>{live ? text.common.now : clock(histogram.to)}</span>
      </figcaption>
    </figure>
  )
}
