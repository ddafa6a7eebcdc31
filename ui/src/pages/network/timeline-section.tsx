// The timeline of uplinks and their latencies, on one axis.

import type { Schemas } from '@/api/client'
import { BandSection, type BandRow, type Paint } from '@/components/bands'
import { LineSection, type LineRow } from '@/components/lines'
import { Section } from '@/components/section'
import { clockOf } from '@/components/time-drawing'
import { useText } from '@/text'
import { formatNumber } from '@/text/format'
import { nameOf, nameOfHealth, timelineOf, troublesOf, type BandKind, type TimelineInput } from './timeline'

type Health = Schemas['UplinkHealth']

const PAINT: Record<BandKind, Paint> = {
  active: 'active',
  standby: 'standby',
  degraded: 'degraded',
  offline: 'offline',
  captive: 'degraded',
  held: 'standby',
  disabled: 'none',
  only: 'standby',
}

interface TimelineProps {
  input: TimelineInput
  uplinks: Schemas['WanUplinks']
  health: readonly Health[]
  hint: string | null
}

export function TimelineSection({ input, uplinks, health, hint }: TimelineProps) {
  const text = useText()
  const words = text.network.uplinks
  const { from, now } = input
  const timeline = timelineOf(input)
  const changes = timeline.changes.filter(({ decision }) => Date.parse(decision.time) >= from)
  const noteOf = (name: string) => {
    const own = health.find((each) => nameOfHealth(each) === name)
    if (!own) return null
    if (own.latency_ms !== null) return milliseconds(own.latency_ms)
    return own.checked_at === null ? words.notProbed : null
  }
  const subOf = (name: string) => {
    const uplink = uplinks.uplinks.find((each) => nameOf(each) === name)
    return uplink ? words.priority(uplink.interface, uplink.priority, uplink.metered) : words.former
  }
  const rows: BandRow[] = timeline.rows.map((row) => ({
    name: row.uplink,
    sub: subOf(row.uplink),
    bands: row.spans.map((span) => ({
      from: span.from,
      to: span.to,
      paint: PAINT[span.kind],
      word: words.bands[span.kind],
      note: span.to === now ? noteOf(row.uplink) : null,
      pinned: span.kind === 'held',
    })),
  }))
  if (rows.every((row) => row.bands.length === 0) && timeline.kernel.length === 0)
    return (
      <Section title={words.timeline}>
        <p className="quiet">{words.timelineNone}</p>
      </Section>
    )
  return (
    <BandSection
      title={words.timeline}
      hint={hint}
      label={words.chart(clockOf(from), clockOf(now), changes.length)}
      subject={words.healthColumns.uplink}
      rows={[
        ...rows,
        {
          name: words.kernel,
          sub: words.kernelSub,
          apart: true,
          bands: timeline.kernel.map((span) => ({
            from: span.from,
            to: span.to,
            paint: 'route' as const,
            word: span.uplink,
          })),
        },
      ]}
      marks={changes.map(({ number, decision }) => ({ number, at: Date.parse(decision.time) }))}
      from={from}
      now={now}
      legend={(['active', 'standby', 'degraded', 'offline'] as const).map((kind) => [
        kind,
        words.bands[kind],
      ])}
    />
  )
}

function milliseconds(value: number): string {
  return `${formatNumber(value, value < 10 ? 1 : 0)} ms`
}

interface LatencyProps {
  /** With their history. */
  recorded: readonly Health[]
  health: readonly Health[]
  from: number
  now: number
}

export function LatencySection({ recorded, health, from, now }: LatencyProps) {
  const text = useText()
  const words = text.network.uplinks
  const percent = (value: number) => `${formatNumber(value, value < 10 ? 1 : 0)} %`
  const rows: LineRow[] = recorded
    .filter((each) => (each.history?.minutes.length ?? 0) > 0)
    .map((each) => {
      const minutes = each.history?.minutes ?? []
      const name = nameOfHealth(each)
      const own = health.find((other) => nameOfHealth(other) === name) ?? each
      return {
        name,
        sub: [
          own.latency_ms === null ? words.noAnswer : milliseconds(own.latency_ms),
          own.loss_pct === null ? null : words.loss(percent(own.loss_pct)),
        ]
          .filter(Boolean)
          .join(', '),
        samples: minutes.map(({ at, latency_ms }) => ({ at: Date.parse(at), value: latency_ms })),
        notes: troublesOf(minutes).map(({ at, latency, loss }) => ({
          at,
          text:
            latency === null
              ? words.noAnswer
              : [milliseconds(latency), loss === null ? null : words.loss(percent(loss))]
                  .filter(Boolean)
                  .join(', '),
        })),
      }
    })
  if (rows.length === 0)
    return (
      <Section title={words.latency}>
        <p className="quiet">
          {recorded.every((each) => each.checked_at === null) ? words.latencyNone : words.latencySoon}
        </p>
      </Section>
    )
  return (
    <LineSection
      title={words.latency}
      hint={words.latencyHint}
      label={words.latencyChart(
        clockOf(from),
        clockOf(now),
        rows.map((row) => `${row.name} ${row.sub}`).join('; '),
      )}
      rows={rows}
      from={from}
      now={now}
      least={20}
      format={milliseconds}
    />
  )
}
