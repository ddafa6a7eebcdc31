// What the daemon recorded of one tunnel: its states, traffic and latency on one axis.

import type { Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { useSearchParams } from '@/session/search-params'
import { BandSection } from '@/components/bands'
import { useRates } from '@/components/history'
import { LineSection, type LineRow } from '@/components/lines'
import { Loaded } from '@/components/section'
import { Segmented } from '@/components/segmented'
import { useNow } from '@/components/time'
import { clockOf } from '@/components/time-drawing'
import { useText } from '@/text'
import { formatNumber, formatRate } from '@/text/format'
import { bandsOf, beginOf, latenciesOf, peakOf, RANGES, ratesOf, type Recorded } from './tunnel-history'
import { minutesOf } from './tunnels'

type Tunnel = Schemas['Tunnel']

export function TunnelHistory({ tunnel }: { tunnel: Tunnel }) {
  const [search, change] = useSearchParams()
  const range = search.range === 'day' ? 'day' : 'hour'
  const history = useGet(
    '/tunnels/history',
    { query: { tunnel: tunnel.id, ...minutesOf(range) } },
    { every: 60_000 },
  )
  return (
    <Loaded query={history} lines={5}>
      {(read) => (
        <Past
          tunnel={tunnel}
          recorded={read.find((each) => each.tunnel_id === tunnel.id)}
          range={range}
          onRange={(next) => change({ range: next === 'hour' ? undefined : next })}
        />
      )}
    </Loaded>
  )
}

interface Props {
  tunnel: Tunnel
  recorded: Recorded | undefined
  range: string
  onRange: (range: string) => void
}

function Past({ tunnel, recorded, range, onRange }: Props) {
  const text = useText()
  const words = text.paths.history
  const { list } = text.paths
  const now = Math.ceil(useNow() / 5000) * 5000
  const current = useRates()(`tunnel.${tunnel.id}`)
  if (!recorded) return <p className="quiet">{words.soon}</p>
  const from = beginOf([recorded], RANGES[range] ?? 0, now)
  const rate = (index: number) => {
    const value = current?.[index]
    return value === undefined ? text.common.noData : formatRate(value)
  }
  const rateRow = (name: string, index: number, which: 'rx_bytes' | 'tx_bytes'): LineRow => {
    const samples = ratesOf(recorded, now, which)
    const peak = peakOf(samples)
    return {
      name,
      sub: rate(index),
      samples,
      filled: true,
      notes: peak ? [{ at: peak.at, text: words.peak(formatRate(peak.value)) }] : [],
    }
  }
  const [from_, now_] = [clockOf(from), clockOf(now)]
  return (
    <>
      <BandSection
        title={words.states}
        actions={
          <Segmented
            label={words.range}
            value={range}
            options={Object.entries(words.ranges)}
            onChange={onRange}
          />
        }
        label={words.stateOf(tunnel.name, from_, now_)}
        subject={list.tunnel}
        rows={[
          {
            name: words.state,
            sub: null,
            bands: bandsOf(recorded, from, now, (status) => text.paths.states[status] ?? status),
          },
        ]}
        from={from}
        now={now}
        legend={words.legend}
      />
      <LineSection
        title={words.traffic}
        hint={words.trafficHint}
        label={words.trafficOf(tunnel.name, from_, now_, rate(0), rate(1))}
        rows={[rateRow(list.received, 0, 'rx_bytes'), rateRow(list.sent, 1, 'tx_bytes')]}
        from={from}
        now={now}
        least={100}
        height={72}
        format={formatRate}
      />
      <Latency tunnel={tunnel} recorded={recorded} from={from} now={now} />
    </>
  )
}

interface LatencyProps extends Pick<Props, 'tunnel'> {
  recorded: Recorded
  from: number
  now: number
}

function Latency({ tunnel, recorded, from, now }: LatencyProps) {
  const text = useText()
  const { latency } = text.paths.detail
  const samples = latenciesOf(recorded)
  if (samples.length === 0) return null
  const current = tunnel.latency_ms
  return (
    <LineSection
      title={latency}
      label={`${latency} ${clockOf(from)} ${clockOf(now)}`}
      rows={[
        {
          name: latency,
          sub: typeof current === 'number' ? milliseconds(current) : text.common.noData,
          samples,
        },
      ]}
      from={from}
      now={now}
      least={20}
      format={milliseconds}
    />
  )
}

function milliseconds(value: number): string {
  return `${formatNumber(value, 1)} ms`
}
