// The packets of the proof over time: what the device sent, what the tunnel carried, what got out.

import { useState } from 'react'
import { Icon } from '@/components/icons'
import { Section } from '@/components/section'
import { Table } from '@/components/table'
import { useText } from '@/text'
import { formatBytes, formatNumber } from '@/text/format'
import { growth, ticksOf, type Proof, type Sample, type Ticks } from './proof'

const LEFT = 176
const RIGHT = 812
const TOP = 22
const LANES = [66.5, 120.5, 174.5] as const

/** Pause between two readings of the tunnel by the daemon, in milliseconds. */
const REFRESHED = 1100

interface Props {
  proof: Proof
  device: string
  tunnel: string
  policy: string | null
}

export function Strip({ proof, device, tunnel, policy }: Props) {
  const text = useText()
  const t = text.wizard.prove
  const [table, setTable] = useState(false)
  const { samples } = proof
  const last = samples[samples.length - 1]
  if (!last || samples.length < 2) return null
  const packets = ticksOf(samples, 'packets')
  const bytes = ticksOf(samples, 'bytes', 60, REFRESHED)
  const escaped = ticksOf(samples, 'escaped')
  const sent = growth(samples, 'packets')
  const carried = growth(samples, 'bytes')
  const out = growth(samples, 'escaped')
  const number = (value: number | null) => (value === null ? text.common.noData : formatNumber(value))
  const size = carried === null ? text.common.noData : formatBytes(carried)
  const span = Math.max(last.at, 1000)
  const x = (at: number) => LEFT + (at / span) * (RIGHT - LEFT)
  const pulled = proof.pulledAt
  const back = proof.backAt ?? last.at
  const every = span > 30_000 ? 10 : span > 16_000 ? 4 : 2
  const seconds = Array.from({ length: Math.floor(span / 1000 / every) + 1 }, (_, index) => index * every)
  return (
    <Section
      title={t.packets}
      hint={`${t.tick(packets.unit)}, ${t.measured}`}
      actions={
        <button type="button" className="link" aria-pressed={table} onClick={() => setTable(!table)}>
          <Icon name="table" />
          {table ? text.common.showAsChart : text.common.showAsTable}
        </button>
      }
    >
      {table ? (
        <Samples samples={samples} device={device} tunnel={tunnel} />
      ) : (
        <div className="scrollx">
          <svg
            className="chart proofc"
            viewBox="0 0 924 212"
            role="img"
            aria-label={t.chart(Math.round(span / 1000), number(sent), size, number(out))}
          >
            {pulled === null ? null : (
              <>
                <rect
                  className="win"
                  x={x(pulled)}
                  y={TOP}
                  width={Math.max(0, x(back) - x(pulled))}
                  height={164}
                />
                <path className="winl" d={`M${x(pulled)} ${TOP}V186M${x(back)} ${TOP}V186`} />
                <text x={x(pulled) + 8} y="14">
                  {t.pulled}
                </text>
                {proof.backAt === null ? null : (
                  <text x={x(back) - 8} y="14" textAnchor="end">
                    {t.handshake}
                  </text>
                )}
              </>
            )}
            <Lane
              at={LANES[0]}
              name={t.sends(device)}
              note={policy ? t.byPolicy(policy) : ''}
              ticks={packets}
              x={x}
            />
            <text className="big" x="920" y={LANES[0] - 7.5} textAnchor="end">
              {number(sent)}
            </text>
            <Lane at={LANES[1]} name={t.carries(tunnel)} note={t.sent} ticks={bytes} x={x} kind="tick--ok" />
            <text className="big" x="920" y={LANES[1] - 7.5} textAnchor="end">
              {size}
            </text>
            <Lane
              at={LANES[2]}
              name={t.outside}
              note={t.outsideHint}
              ticks={escaped}
              x={x}
              kind="tick--leak"
            />
            <text
              className={out === 0 ? 'big z' : out === null ? 'big' : 'big big--leak'}
              x="920"
              y={LANES[2] - 7.5}
              textAnchor="end"
            >
              {number(out)}
            </text>
            {seconds.map((second) => (
              <text key={second} x={x(second * 1000)} y="206" textAnchor="middle">
                {t.seconds(second)}
              </text>
            ))}
          </svg>
        </div>
      )}
    </Section>
  )
}

interface LaneProps {
  at: number
  name: string
  note: string
  ticks: Ticks
  x: (at: number) => number
  kind?: string
}

function Lane({ at, name, note, ticks, x, kind = '' }: LaneProps) {
  const path = ticks.at.map((time) => `M${x(time).toFixed(1)} ${at - 26.5}V${at - 1.5}`).join('')
  return (
    <>
      <text className="nm" x="0" y={at - 20.5}>
        {name.length > 24 ? `${name.slice(0, 23)}…` : name}
        <title>{name}</title>
      </text>
      <text x="0" y={at - 4.5}>
        {note.length > 28 ? `${note.slice(0, 27)}…` : note}
        <title>{note}</title>
      </text>
      <path className="lane" d={`M${LEFT} ${at}H${RIGHT}`} />
      {path ? <path className={`tick ${kind}`} d={path} /> : null}
    </>
  )
}

interface SamplesProps {
  samples: Sample[]
  device: string
  tunnel: string
}

function Samples({ samples, device, tunnel }: SamplesProps) {
  const text = useText()
  const t = text.wizard.prove
  const cell = (value: number | null, show: (value: number) => string) =>
    value === null ? text.common.noData : show(value)
  const pairAt = (index: number) => (index > 0 ? samples.slice(index - 1, index + 1) : [])
  return (
    <div className="timechart__table">
      <Table
        label={t.packets}
        rows={samples}
        id={(sample) => sample.at}
        plain
        dense
        columns={[
          { head: t.time, heading: true, cell: (sample) => t.seconds(Math.round(sample.at / 100) / 10) },
          {
            head: t.sends(device),
            numeric: true,
            cell: (_, index) => cell(growth(pairAt(index), 'packets'), formatNumber),
          },
          {
            head: t.carries(tunnel),
            numeric: true,
            cell: (_, index) => cell(growth(pairAt(index), 'bytes'), formatBytes),
          },
          {
            head: t.outside,
            numeric: true,
            cell: (_, index) => cell(growth(pairAt(index), 'escaped'), formatNumber),
          },
        ]}
      />
    </div>
  )
}
