// A small line of rates beside the figures that say the same.

interface Props {
  values: readonly number[]
}

const WIDTH = 76
const HEIGHT = 24

/** The outline of a line from the left to the right edge, between 2 and 22. */
export function sparkPath(values: readonly number[]): string {
  const most = Math.max(...values, 1)
  return values
    .map((value, index) => {
      const x = values.length > 1 ? (index * WIDTH) / (values.length - 1) : WIDTH
      const y = 22 - (value / most) * 20
      return `${index === 0 ? 'M' : 'L'}${x.toFixed(1)} ${y.toFixed(1)}`
    })
    .join(' ')
}

export function Sparkline({ values }: Props) {
  const path = sparkPath(values)
  return (
    <svg className="chart" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} aria-hidden="true">
      {values.length > 1 ? (
        <>
          <path className="c-area" d={`${path} L${WIDTH} ${HEIGHT} L0 ${HEIGHT}z`} />
          <path className="c-line" d={path} />
        </>
      ) : (
        <path className="c-base c-base--s" strokeDasharray="2 3" d={`M0 22H${WIDTH}`} />
      )}
    </svg>
  )
}
