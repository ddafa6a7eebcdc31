// States over time: a row of bands for each thing, or the same as a table.

import { useState, type ReactNode } from 'react'
import { useText } from '@/text'
import { Section } from './section'
import { clockOf, RowName, TableSwitch, TimeDrawing } from './time-drawing'
import { spread, widthOf, type Scale } from './timescale'
import { Table } from './table'

/** How a band looks. `route` is a band of the kernel, which is no state. */
export type Paint = 'active' | 'standby' | 'degraded' | 'offline' | 'none' | 'route'

export interface Band {
  from: number
  to: number
  paint: Paint
  word: string
  /** What is added to the word if there is room. */
  note?: string | null
  pinned?: boolean
}

export interface BandRow {
  name: string
  sub: string | null
  bands: Band[]
  /** A line separates it from the row above. */
  apart?: boolean
}

/** A numbered point in time. */
export interface Mark {
  number: number
  at: number
}

interface Props {
  title: string
  hint?: ReactNode
  actions?: ReactNode
  /** What it shows, in a sentence. */
  label: string
  /** Heading of the names in the table. */
  subject: string
  rows: BandRow[]
  marks?: Mark[]
  from: number
  now: number
  legend: [Paint, string][]
}

const CLASS: Record<Paint, string> = {
  active: 'seg-ok',
  standby: 'seg-sb',
  degraded: 'seg-dg',
  offline: 'off',
  none: 'seg-none',
  route: 'seg-k',
}

const ROW = 40

export function BandSection(props: Props) {
  const { title, hint, actions, legend } = props
  const [table, setTable] = useState(false)
  return (
    <Section
      title={title}
      hint={hint}
      actions={
        <>
          <Legend legend={legend} />
          {actions}
          <TableSwitch table={table} onChange={setTable} />
        </>
      }
    >
      {table ? <BandTable {...props} /> : <Drawing {...props} />}
    </Section>
  )
}

function Legend({ legend }: { legend: [Paint, string][] }) {
  return (
    <span className="legend only-wide">
      {legend.map(([paint, word]) => (
        <span key={word}>
          <svg className="wan" viewBox="0 0 22 8" aria-hidden="true">
            <Shape paint={paint} x={0} y={0} width={22} height={8} radius={2} />
          </svg>
          {word}
        </span>
      ))}
    </span>
  )
}

function Drawing({ label, rows, marks = [], from, now }: Props) {
  const top = marks.length > 0 ? 42 : 24
  const tops = rows.map((_, index) => {
    const apart = rows.slice(0, index + 1).filter((row) => row.apart).length
    return top + index * ROW + apart * 14
  })
  const height = (tops.at(-1) ?? top) + ROW - 4
  return (
    <TimeDrawing from={from} now={now} height={height} label={label} axis={top}>
      {(scale) => (
        <>
          {rows.map((row, index) => (
            <g key={`${row.name} ${row.sub}`}>
              {row.apart ? (
                <path className="grid" d={`M0 ${(tops[index] ?? 0) - 11.5}H${scale.width}`} />
              ) : null}
              <RowName top={tops[index] ?? 0} name={row.name} sub={row.sub} scale={scale} />
              {row.bands.map((band) => (
                <BandShape
                  key={`${band.from} ${band.word}`}
                  band={band}
                  top={tops[index] ?? 0}
                  scale={scale}
                />
              ))}
            </g>
          ))}
          <Marks marks={marks} scale={scale} height={height} />
        </>
      )}
    </TimeDrawing>
  )
}

function Marks({ marks, scale, height }: { marks: Mark[]; scale: Scale; height: number }) {
  const places = marks.map((mark) => scale.x(mark.at))
  // On a small drawing the oldest have a line only.
  const room = Math.floor((scale.width - 9 - scale.left) / 18)
  const plain = Math.max(0, marks.length - room)
  const spaced = spread(places.slice(plain), 18, scale.left, scale.width - 9)
  return marks.map(({ number }, index) => (
    <g key={number}>
      <path className="mk" d={`M${places[index]} 40V${height}`} />
      {index < plain ? null : (
        <>
          <path className="mk" d={`M${places[index]} 40L${spaced[index - plain]} 34`} />
          <circle className="mkc" cx={spaced[index - plain]} cy="28" r="8" />
          <text className="mkt" x={spaced[index - plain]} y="32">
            {number}
          </text>
        </>
      )}
    </g>
  ))
}

interface ShapeProps {
  paint: Paint
  x: number
  y: number
  width: number
  height: number
  radius: number
}

function Shape({ paint, x, y, width, height, radius }: ShapeProps) {
  return (
    <rect
      className={CLASS[paint]}
      x={x + 0.5}
      y={y + 0.5}
      width={Math.max(1, width - 1)}
      height={height - 1}
      rx={radius}
    />
  )
}

interface BandProps {
  band: Band
  top: number
  scale: Scale
}

function BandShape({ band, top, scale }: BandProps) {
  const x = scale.x(band.from)
  const width = scale.x(band.to) - x
  const long = band.note ? `${band.word}, ${band.note}` : band.word
  const before = band.pinned ? 23 : 9
  const room = width - before - 7
  const shown = widthOf(long) < room ? long : widthOf(band.word) < room ? band.word : null
  const filled = band.paint === 'active' || band.paint === 'route'
  const patterned = band.paint === 'degraded' || band.paint === 'offline'
  return (
    <g>
      <title>{`${long}, ${clockOf(band.from)}`}</title>
      <Shape paint={band.paint} x={x} y={top + 4} width={width} height={26} radius={3} />
      {shown ? (
        <>
          {patterned ? (
            <rect
              className="lblbg"
              x={x + before - 5}
              y={top + 9}
              width={widthOf(shown) + 10}
              height="16"
              rx="3"
            />
          ) : null}
          {band.pinned ? (
            <use className="pinu" href="#i-pin" x={x + 6} y={top + 11} width="12" height="12" />
          ) : null}
          <text className={filled ? 'in' : 'inb'} x={x + before} y={top + 21}>
            {shown}
          </text>
        </>
      ) : null}
    </g>
  )
}

/** The same as the drawing, in words; newest first. */
function BandTable({ label, subject, rows, now }: Props) {
  const text = useText()
  const { state, from, to } = text.common.bands
  const clock = (time: number) => (time === now ? text.common.now : clockOf(time, true))
  return (
    <div className="timechart__table">
      <Table
        label={label}
        rows={rows.flatMap((row) => [...row.bands].reverse().map((band) => ({ row, band })))}
        id={({ row, band }) => `${row.name} ${row.sub} ${band.from}`}
        columns={[
          {
            head: subject,
            bare: true,
            className: 'med',
            cell: ({ row }) => (row.apart && row.sub ? `${row.name}, ${row.sub}` : row.name),
          },
          { head: state, cell: ({ band }) => band.word },
          { head: from, className: 'mono dim', cell: ({ band }) => clock(band.from) },
          { head: to, className: 'mono dim', cell: ({ band }) => clock(band.to) },
        ]}
      />
    </div>
  )
}
