// Values over time, one small line for each thing, on the axis of the bands above it; or the same as a table.

import { useState, type ReactNode } from 'react'
import { useText } from '@/text'
import { Section } from './section'
import { clockOf, RowName, TableSwitch, TimeDrawing } from './time-drawing'
import { linesOf, widthOf, type Sample, type Scale } from './timescale'
import { Table } from './table'

/** Words at a time of a row. */
export interface Note {
  at: number
  text: string
}

export interface LineRow {
  name: string
  sub: string | null
  /** One of each minute, oldest first. */
  samples: readonly Sample[]
  notes?: readonly Note[]
  filled?: boolean
}

interface Props {
  title: string
  hint?: ReactNode
  actions?: ReactNode
  /** What it shows, in a sentence. */
  label: string
  rows: LineRow[]
  from: number
  now: number
  /** Value at the top of a row whose values are all smaller. */
  least: number
  height?: number
  format: (value: number) => string
}

const HALF = 30_000
/** Room above the highest value, for notes. */
const AIR = 16

export function LineSection(props: Props) {
  const { title, hint, actions, label, rows, from, now, least, height = 46, format } = props
  const [table, setTable] = useState(false)
  return (
    <Section
      title={title}
      hint={hint}
      actions={
        <>
          {actions}
          <TableSwitch table={table} onChange={setTable} />
        </>
      }
    >
      {table ? (
        <ValueTable label={label} rows={rows} format={format} />
      ) : (
        <TimeDrawing from={from} now={now} height={rows.length * height} label={label}>
          {(scale) =>
            rows.map((row, index) => (
              <Row
                key={row.name}
                row={row}
                top={index * height}
                height={height}
                least={least}
                scale={scale}
              />
            ))
          }
        </TimeDrawing>
      )}
    </Section>
  )
}

interface RowProps {
  row: LineRow
  top: number
  height: number
  least: number
  scale: Scale
}

function Row({ row, top, height, least, scale }: RowProps) {
  const bottom = top + height - 4.5
  const samples = row.samples.filter((each) => each.at + 2 * HALF > scale.from)
  const highest = Math.max(least, ...samples.map((each) => each.value ?? 0))
  const x = (at: number) => Math.min(scale.width, Math.max(scale.left, scale.x(at + HALF)))
  const y = (value: number) => bottom - 1 - (value / highest) * (height - 6 - AIR)
  const notes = placed(row.notes ?? [], scale)
  return (
    <g>
      <path className="grid" d={`M${scale.left} ${bottom}H${scale.width}`} />
      <RowName top={top + (height - 46) / 2} name={row.name} sub={row.sub} scale={scale} />
      {linesOf(samples).map((line) => {
        const points = line.map(({ at, value }) => `${x(at).toFixed(1)} ${y(value).toFixed(1)}`)
        const [first, last] = [line[0]?.at ?? 0, line.at(-1)?.at ?? 0]
        // A single minute is as wide as it lasts.
        const path =
          line.length === 1
            ? `M${points[0]}h${Math.max(2, scale.x(2 * HALF) - scale.x(0))}`
            : `M${points.join('L')}`
        return (
          <g key={first}>
            {row.filled && line.length > 1 ? (
              <path
                className="c-area"
                d={`${path}L${x(last).toFixed(1)} ${bottom}L${x(first).toFixed(1)} ${bottom}z`}
              />
            ) : null}
            <path className="c-line" d={path} />
          </g>
        )
      })}
      {notes.map((note) => (
        <text key={note.at} x={note.x} y={top + 11}>
          {note.text}
        </text>
      ))}
    </g>
  )
}

/** Notes that do not cover one another: a later one gives way. */
function placed(notes: readonly Note[], scale: Scale) {
  const shown: (Note & { x: number; end: number })[] = []
  for (const note of notes) {
    const x = Math.min(scale.x(note.at) + 6, scale.width - widthOf(note.text))
    if (x < Math.max(scale.left, (shown.at(-1)?.end ?? 0) + 8)) continue
    shown.push({ ...note, x, end: x + widthOf(note.text) })
  }
  return shown
}

interface TableProps {
  label: string
  rows: LineRow[]
  format: (value: number) => string
}

/** Minutes that the table shows. */
const MOST = 240

function ValueTable({ label, rows, format }: TableProps) {
  const text = useText()
  const times = [...new Set(rows.flatMap((row) => row.samples.map((each) => each.at)))]
    .sort((one, other) => other - one)
    .slice(0, MOST)
  const values = rows.map((row) => new Map(row.samples.map((each) => [each.at, each.value])))
  return (
    <div className="timechart__table">
      <Table
        label={label}
        rows={times}
        id={(time) => time}
        dense
        plain
        columns={[
          { head: text.common.bands.minute, heading: true, cell: (time) => clockOf(time) },
          ...rows.map((row, index) => ({
            head: row.name,
            numeric: true,
            cell: (time: number) => {
              const value = values[index]?.get(time)
              return typeof value === 'number' ? format(value) : text.common.noData
            },
          })),
        ]}
      />
    </div>
  )
}
