// Values over time: a chart with a sentence that says the same, and the values as a table.

import { useEffect, useId, useMemo, useRef, useState } from 'react'
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { useText } from '@/text'
import { formatTime } from '@/text/format'
import { Icon } from './icons'
import { Table } from './table'

export interface Series {
  label: string
  /** A value for each time; `null` where there is none, which leaves a gap. */
  values: (number | null)[]
  /** Name of a colour of tokens.css. Without it the line is plain ink. */
  colour?: string
  filled?: boolean
}

interface Props {
  /** What the chart shows, in a sentence with its extremes. */
  summary: string
  /** Times in seconds since 1970, ascending. */
  times: number[]
  series: Series[]
  height?: number
  format: (value: number) => string
}

const INK = '--ink-2'

export function TimeChart({ summary, times, series, height = 120, format }: Props) {
  const text = useText()
  const id = useId()
  const [table, setTable] = useState(false)
  return (
    <figure className="timechart">
      {table ? (
        <ValueTable times={times} series={series} format={format} label={summary} />
      ) : (
        <Plot times={times} series={series} height={height} format={format} labelledBy={id} />
      )}
      <figcaption id={id} className={table ? 'sr' : 'dim sm'}>
        {summary}
      </figcaption>
      <div className="timechart__foot">
        <span className="legend">
          {series.map((each) => (
            <span key={each.label}>
              <svg className="chart" viewBox="0 0 22 8" aria-hidden="true">
                <path
                  d="M0 4H22"
                  fill="none"
                  strokeWidth="1.5"
                  style={{ stroke: `var(${each.colour ?? INK})` }}
                />
              </svg>
              {each.label}
            </span>
          ))}
        </span>
        <button type="button" className="link" onClick={() => setTable(!table)} aria-pressed={table}>
          <Icon name="table" />
          {table ? text.common.showAsChart : text.common.showAsTable}
        </button>
      </div>
    </figure>
  )
}

interface PlotProps {
  times: number[]
  series: Series[]
  height: number
  format: (value: number) => string
  labelledBy: string
}

function Plot({ times, series, height, format, labelledBy }: PlotProps) {
  const element = useRef<HTMLDivElement>(null)
  const theme = useThemeChanges()
  const shape = series.map((each) => `${each.label} ${each.colour ?? ''}`).join()
  const plot = useRef<uPlot | null>(null)
  const latest = useRef({ times, series, format })
  useEffect(() => {
    latest.current = { times, series, format }
    plot.current?.setData([times, ...series.map((each) => each.values)] as uPlot.AlignedData)
  }, [times, series, format])
  useEffect(() => {
    const box = element.current
    if (!box) return
    const { times: at, series: lines } = latest.current
    const drawn = new uPlot(
      optionsOf(box, height, lines, (value) => latest.current.format(value)),
      [at, ...lines.map((each) => each.values)] as uPlot.AlignedData,
      box,
    )
    plot.current = drawn
    const resize = new ResizeObserver(() => drawn.setSize({ width: box.clientWidth || 280, height }))
    resize.observe(box)
    return () => {
      resize.disconnect()
      drawn.destroy()
      plot.current = null
    }
  }, [height, theme, shape])
  return <div ref={element} className="timechart__plot" role="img" aria-labelledby={labelledBy} />
}

/** The theme's colour as the page draws it: a canvas knows no variables. */
function colourOf(box: HTMLElement, name: string): string {
  box.style.color = `var(${name})`
  const { color } = getComputedStyle(box)
  box.style.color = ''
  return color
}

function optionsOf(
  box: HTMLElement,
  height: number,
  lines: Series[],
  format: (value: number) => string,
): uPlot.Options {
  const colour = (name: string) => colourOf(box, name)
  const axis = {
    stroke: colour('--ink-3'),
    grid: { stroke: colour('--line'), width: 1 },
    ticks: { show: false },
  }
  return {
    width: box.clientWidth || 280,
    height,
    legend: { show: false },
    cursor: { show: false },
    padding: [6, 4, 0, 0],
    axes: [
      {
        ...axis,
        size: 22,
        font: '11px system-ui',
        space: 72,
        // Ticks less than a minute apart have seconds.
        values: (chart, ticks, _axis, _space, step) => {
          const seconds = step < 60
          return ticks.map((tick) =>
            roomAfter(chart, tick) < (seconds ? 28 : 18)
              ? ''
              : formatTime(new Date(tick * 1000).toISOString(), seconds ? 'seconds' : 'short'),
          )
        },
      },
      {
        ...axis,
        // Rates are longer than counts.
        size: (_, shown) => Math.max(44, ...(shown ?? []).map((each) => each.length * 6.4 + 12)),
        font: '11px system-ui',
        values: (_, ticks) => ticks.map((tick) => format(tick)),
      },
    ],
    series: [
      {},
      ...lines.map((each) => ({
        label: each.label,
        stroke: colour(each.colour ?? INK),
        fill: each.filled ? colour(each.colour ?? INK).replace(')', ', 0.08)') : undefined,
        width: 1.5,
        points: { show: false },
      })),
    ],
  }
}

/** Pixels from a time to the right edge, over which a label would be cut. */
function roomAfter(chart: uPlot, time: number): number {
  const { min, max } = chart.scales.x ?? {}
  if (min === undefined || max === undefined || max <= min || chart.bbox.width === 0) return Infinity
  return ((max - time) / (max - min)) * (chart.bbox.width / devicePixelRatio)
}

/** Changes whenever the colours of the page change. */
function useThemeChanges(): number {
  const [count, setCount] = useState(0)
  useEffect(() => {
    const changed = () => setCount((before) => before + 1)
    const observer = new MutationObserver(changed)
    observer.observe(document.documentElement, { attributeFilter: ['data-theme'] })
    const system = matchMedia('(prefers-color-scheme: dark)')
    system.addEventListener('change', changed)
    return () => {
      observer.disconnect()
      system.removeEventListener('change', changed)
    }
  }, [])
  return count
}

interface TableProps {
  label: string
  times: number[]
  series: Series[]
  format: (value: number) => string
}

/** Rows of a chart that are shown as a table. */
const MOST = 200

function ValueTable({ label, times, series, format }: TableProps) {
  const text = useText()
  const rows = useMemo(
    () =>
      times
        .map((time, index) => ({ time, index }))
        .slice(-MOST)
        .reverse(),
    [times],
  )
  return (
    <div className="timechart__table">
      <Table
        label={label}
        rows={rows}
        id={({ time }) => time}
        dense
        plain
        columns={[
          { head: '', heading: true, cell: ({ time }) => formatTime(new Date(time * 1000).toISOString()) },
          ...series.map((each) => ({
            head: each.label,
            numeric: true,
            cell: ({ index }: { index: number }) => {
              const value = each.values[index]
              return value === null || value === undefined ? text.common.noData : format(value)
            },
          })),
        ]}
      />
    </div>
  )
}
