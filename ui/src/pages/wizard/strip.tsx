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
  const span = Math.max(last.at, 1000)
  const { unit } = ticksOf(samples, 'packets')
  return (
    <Section
      title={t.packets}
      hint={`${t.tick(unit)}, ${t.measured}`}
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
          <Chart proof={proof} device={device} tunnel={tunnel} policy={policy} span={span} end={last.at} />
        </div>
      )}
    </Section>
  )
}

interface ChartProps extends Props {
  /** Time that is drawn, and time of the last sample, in milliseconds. */
  span: number
  end: number
}

function Chart({ proof, device, tunnel, policy, span, end }: ChartProps) {
  const text = useText()
  const t = text.wizard.prove
  const { samples } = proof
  const [sent, carried, out] = (['packets', 'bytes', 'escaped'] as const).map((of) => growth(samples, of))
  const number = (value: number | null | undefined) =>
    value === null || value === undefined ? text.common.noData : formatNumber(value)
  const size = carried === null || carried === undefined ? text.common.noData : formatBytes(carried)
  const x = (at: number) => LEFT + (at / span) * (RIGHT - LEFT)
  const every = span > 30_000 ? 10 : span > 16_000 ? 4 : 2
  const seconds = Array.from({ length: Math.floor(span / 1000 / every) + 1 }, (_, index) => index * every)
  return (
    <svg
      className="chart proofc"
      viewBox="0 0 924 212"
      role="img"
      aria-label={t.chart(Math.round(span / 1000), number(sent), size, number(out))}
    >
      <Pulled proof={proof} end={end} x={x} />
      <Lane
        at={LANES[0]}
        name={t.sends(device)}
        note={policy ? t.byPolicy(policy) : ''}
        ticks={ticksOf(samples, 'packets')}
        total={number(sent)}
        x={x}
      />
      <Lane
        at={LANES[1]}
        name={t.carries(tunnel)}
        note={t.sent}
        ticks={ticksOf(samples, 'bytes', 60, REFRESHED)}
        total={size}
        x={x}
        kind="tick--ok"
      />
      <Lane
        at={LANES[2]}
        name={t.outside}
        note={t.outsideHint}
        ticks={ticksOf(samples, 'escaped')}
        total={number(out)}
        totalKind={out === 0 ? 'z' : out === null ? '' : 'big--leak'}
        x={x}
        kind="tick--leak"
      />
      {seconds.map((second) => (
        <text key={second} x={x(second * 1000)} y="206" textAnchor="middle">
          {t.seconds(second)}
        </text>
      ))}
    </svg>
  )
}

interface PulledProps {
  proof: Proof
  end: number
  x: (at: number) => number
}

/** The time without the tunnel. */
function Pulled({ proof: { pulledAt, backAt }, end, x }: PulledProps) {
  const t = useText().wizard.prove
  if (pulledAt === null) return null
  const [from, to] = [x(pulledAt), x(backAt ?? end)]
  return (
    <>
      <rect className="win" x={from} y={TOP} width={Math.max(0, to - from)} height={164} />
      <path className="winl" d={`M${from} ${TOP}V186M${to} ${TOP}V186`} />
      <text x={from + 8} y="14">
        {t.pulled}
      </text>
      {backAt === null ? null : (
        <text x={to - 8} y="14" textAnchor="end">
          {t.handshake}
        </text>
      )}
    </>
  )
}

interface LaneProps {
  at: number
  name: string
  note: string
  ticks: Ticks
  total: string
  totalKind?: string
  x: (at: number) => number
  kind?: string
}

function Lane({ at, name, note, ticks, total, totalKind = '', x, kind = '' }: LaneProps) {
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
      <text className={totalKind ? `big ${totalKind}` : 'big'} x="920" y={at - 7.5} textAnchor="end">
        {total}
      </text>
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
