// Queries, blocked queries and cache hits a minute, as the daemon counted them in the last day.

import { useMemo } from 'react'
import { useGet } from '@/api/query'
import { useSearchParams } from '@/session/search-params'
import { LoadedSection } from '@/components/section'
import { Segmented } from '@/components/segmented'
import { TimeChart } from '@/components/time-chart'
import { useText } from '@/text'
import { formatNumber, formatTime } from '@/text/format'
import type { Schemas } from '@/api/client'
import { linesOf } from './minutes'

/** Hours that the chart can show, and the minutes that one point stands for. */
const SPANS = { '1': 1, '6': 2, '24': 5 } as const
type Hours = keyof typeof SPANS

export function QueryChart() {
  const text = useText()
  const { chart } = text.dns.upstreams
  const [search, change] = useSearchParams()
  const hours: Hours = search.hours !== undefined && search.hours in SPANS ? (search.hours as Hours) : '1'
  const query = useGet(
    '/dns/status',
    { query: { history: true, minutes: Number(hours) * 60 } },
    { every: 15_000 },
  )
  return (
    <LoadedSection
      title={chart.title}
      hint={chart.hint}
      actions={
        <Segmented
          label={chart.span}
          value={hours}
          options={(Object.keys(SPANS) as Hours[]).map((each) => [each, chart.hours(Number(each))] as const)}
          onChange={(next) => change({ hours: next === '1' ? undefined : next })}
        />
      }
      query={query}
      lines={4}
    >
      {(status) => <Chart history={status.history ?? []} step={SPANS[hours]} readAt={query.dataUpdatedAt} />}
    </LoadedSection>
  )
}

interface ChartProps {
  history: readonly Schemas['DnsMinute'][]
  step: number
  readAt: number
}

function Chart({ history, step, readAt }: ChartProps) {
  const text = useText()
  const { chart } = text.dns.upstreams
  const lines = useMemo(() => linesOf(history, readAt, step), [history, readAt, step])
  const format = (value: number) => formatNumber(value, value < 10 ? 1 : 0)
  const [first] = lines.times
  if (first === undefined || lines.times.length < 2) return <p className="mid">{chart.waiting}</p>
  const total = history.reduce((sum, minute) => sum + minute.queries, 0)
  const most = Math.max(0, ...lines.queries.map((each) => each ?? 0))
  return (
    <TimeChart
      summary={chart.summary(
        formatTime(new Date(first * 1000).toISOString()),
        formatNumber(total),
        format(most),
      )}
      times={lines.times}
      series={[
        { label: chart.queries, values: lines.queries, filled: true },
        { label: chart.blocked, values: lines.blocked, colour: '--blocked-mark' },
        { label: chart.cached, values: lines.cached, colour: '--control' },
      ]}
      format={format}
    />
  )
}
