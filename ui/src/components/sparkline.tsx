// A small line of values that only rise from zero. It has no axes; the words beside it say the last value.

interface Props {
  /** `null` leaves a gap. */
  values: readonly (number | null)[]
  width?: number
  height?: number
  /** Values that are drawn, the newest ones. */
  most?: number
}

export function Sparkline({ values, width = 120, height = 28, most = 60 }: Props) {
  const shown = values.slice(-most)
  const highest = Math.max(1, ...shown.map((value) => value ?? 0))
  const step = width / (most - 1)
  const left = width - (shown.length - 1) * step
  const points = shown.map((value, index) =>
    value === null ? null : { x: left + index * step, y: height - 2 - (value / highest) * (height - 5) },
  )
  return (
    <svg className="chart spark" viewBox={`0 0 ${width} ${height}`} aria-hidden="true">
      <path className="c-base" d={`M0 ${height - 1.5}H${width}`} />
      {partsOf(points).map((part) => (
        <g key={part[0]?.x}>
          <path className="c-area" d={`${line(part)} V${height - 2} H${part[0]?.x.toFixed(1)}z`} />
          <path className="c-line" d={line(part)} />
        </g>
      ))}
    </svg>
  )
}

interface Point {
  x: number
  y: number
}

/** Splits the points at the gaps. */
function partsOf(points: readonly (Point | null)[]): Point[][] {
  const parts: Point[][] = []
  let part: Point[] = []
  for (const point of [...points, null]) {
    if (point) part.push(point)
    else if (part.length > 0) {
      parts.push(part)
      part = []
    }
  }
  return parts
}

function line(part: readonly Point[]): string {
  return part.map(({ x, y }, index) => `${index === 0 ? 'M' : 'L'}${x.toFixed(1)} ${y.toFixed(1)}`).join(' ')
}
