// Queries, blocked queries and cache hits a second since this tab opened.

import { useEffect, useSyncExternalStore } from 'react'
import { useGet } from '@/api/query'
import { Section } from '@/components/section'
import { TimeChart } from '@/components/time-chart'
import { useText } from '@/text'
import { formatAge, formatNumber } from '@/text/format'
import { add, ratesOf, type Reading } from './rates'

let readings: readonly Reading[] = []
const listeners = new Set<() => void>()

function subscribe(listener: () => void) {
  listeners.add(listener)
  return () => void listeners.delete(listener)
}

export function QueryChart() {
  const text = useText()
  const { chart } = text.dns.upstreams
  const query = useGet('/dns/status', {}, { every: 5000 })
  const status = query.data?.data
  const at = query.dataUpdatedAt
  useEffect(() => {
    if (!status || at === 0) return
    const next = add(readings, {
      at,
      queries: status.queries_today,
      blocked: status.blocked_today,
      hits: status.cache.hits,
    })
    if (next === readings) return
    readings = next
    for (const listener of listeners) listener()
  }, [status, at])
  const kept = useSyncExternalStore(subscribe, () => readings)
  const rates = ratesOf(kept)
  const first = kept[0]
  const last = kept[kept.length - 1]
  const format = (value: number) => chart.perSecond(formatNumber(value, 1))
  const most = Math.max(0, ...rates.queries.map((each) => each ?? 0))
  return (
    <Section title={chart.title} hint={chart.hint}>
      {first && last && rates.times.length > 1 ? (
        <TimeChart
          summary={chart.summary(formatAge((last.at - first.at) / 1000, text), format(most))}
          times={rates.times}
          series={[
            { label: chart.queries, values: rates.queries, filled: true },
            { label: chart.blocked, values: rates.blocked, colour: '--blocked-mark' },
            { label: chart.cached, values: rates.cached, colour: '--control' },
          ]}
          format={format}
        />
      ) : (
        <p className="mid">{chart.waiting}</p>
      )}
    </Section>
  )
}
