// DNS in figures, and the queries per minute: of the last hours as the daemon recorded them, else since this tab opened.

import { useMemo } from 'react'
import type { Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { Link } from '@/session/link'
import { Facts } from '@/components/facts'
import { useCounters, useHistory } from '@/components/history'
import { PauseBlocking } from '@/components/pause-blocking'
import { LoadedSection, Skeleton } from '@/components/section'
import { TimeChart } from '@/components/time-chart'
import { useText } from '@/text'
import { formatNumber, formatTime } from '@/text/format'
import { buckets } from './minutes'

/** A share in whole percent. Null without a whole. */
export function percent(part: number, whole: number): number | null {
  return whole > 0 ? Math.round((100 * part) / whole) : null
}

export function DnsPanel() {
  const text = useText()
  const words = text.overview.dns
  const query = useGet('/dns/status', {}, { every: 30_000 })
  useCounters(query.dataUpdatedAt, () => {
    const status = query.data?.data
    return status ? [['dns', [status.queries_today, status.blocked_today]]] : []
  })
  return (
    <LoadedSection
      title={words.title}
      actions={
        <Link className="link" to="/dns">
          {words.log}
        </Link>
      }
      query={query}
    >
      {(status) => {
        const blocked = percent(status.blocked_today, status.queries_today)
        const cached = percent(status.cache.hits, status.cache.hits + status.cache.misses)
        const answering = status.upstreams.filter((upstream) => upstream.ok).length
        return (
          <>
            {status.running ? null : <p className="med">{words.notRunning}</p>}
            <PauseBlocking blocking={status.blocking} />
            <Facts
              className="kv"
              facts={[
                [words.today, formatNumber(status.queries_today)],
                [
                  words.blocked,
                  <span key="blocked">
                    {formatNumber(status.blocked_today)}{' '}
                    {blocked === null ? null : <span className="dim sm">{blocked} %</span>}
                  </span>,
                ],
                [words.cached, cached === null ? null : `${cached} %`],
              ]}
            />
            <p className="sm dim">{words.upstreams(answering, status.upstreams.length)}</p>
            <Queries />
          </>
        )
      }}
    </LoadedSection>
  )
}

/** Minutes of the chart, and those that one point of it stands for. */
const MINUTES = 12 * 60
const STEP = 5

function Queries() {
  const { data, error, dataUpdatedAt } = useGet(
    '/dns/status',
    { query: { history: true, minutes: MINUTES } },
    { every: 60_000 },
  )
  if (!data && !error) return <Skeleton lines={2} />
  const minutes = data?.data.history ?? []
  return minutes.length > 2 ? <Recorded minutes={minutes} now={dataUpdatedAt} /> : <SinceOpened />
}

function Recorded({ minutes, now }: { minutes: readonly Schemas['DnsMinute'][]; now: number }) {
  const text = useText()
  const words = text.overview.dns
  const points = useMemo(
    () => buckets(minutes, minutes.length > 60 ? STEP : 1, now, (minute) => [minute.queries, minute.blocked]),
    [minutes, now],
  )
  const most = Math.max(...minutes.map((minute) => minute.queries))
  return (
    <TimeChart
      summary={words.perMinute(formatTime(minutes[0]?.at ?? ''), formatNumber(most))}
      times={points.map((point) => point.time)}
      height={84}
      format={formatRounded}
      series={[
        { label: words.all, values: points.map((point) => point.means[0] ?? null), filled: true },
        {
          label: text.overview.flow.blocked,
          values: points.map((point) => point.means[1] ?? null),
          colour: '--blocked-mark',
        },
      ]}
    />
  )
}

const formatRounded = (value: number) => formatNumber(value, value < 10 ? 1 : 0)

/** Without a recorded history. */
function SinceOpened() {
  const text = useText()
  const points = useHistory('dns')
  if (points.length < 2) return <p className="sm dim">{text.overview.dns.soon}</p>
  const all = points.map((point) => (point.rates[0] ?? 0) * 60)
  return (
    <TimeChart
      summary={text.overview.dns.sinceOpened(formatRounded(Math.max(...all)))}
      times={points.map((point) => point.time / 1000)}
      height={84}
      format={formatRounded}
      series={[
        { label: text.overview.dns.all, values: all, filled: true },
        {
          label: text.overview.flow.blocked,
          values: points.map((point) => (point.rates[1] ?? 0) * 60),
          colour: '--blocked-mark',
        },
      ]}
    />
  )
}
