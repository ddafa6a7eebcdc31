// DNS in figures, and the queries per minute since this tab was opened.

import { useGet } from '@/api/query'
import { Link } from '@/app/link'
import { useCounters, useHistory } from '@/components/history'
import { Loaded, Section } from '@/components/section'
import { TimeChart } from '@/components/time-chart'
import { useText } from '@/text'
import { formatNumber, formatTime } from '@/text/format'

/** A share in whole percent. Null without a whole. */
export function percent(part: number, whole: number): number | null {
  return whole > 0 ? Math.round((100 * part) / whole) : null
}

export function DnsPanel() {
  const text = useText()
  const words = text.overview.dns
  const query = useGet('/dns/status')
  useCounters(query.dataUpdatedAt, () => {
    const status = query.data?.data
    return status ? [['dns', [status.queries_today, status.blocked_today]]] : []
  })
  return (
    <Section
      title={words.title}
      actions={
        <Link className="link" to="/dns">
          {words.log}
        </Link>
      }
    >
      <Loaded query={query}>
        {(status) => {
          const blocked = percent(status.blocked_today, status.queries_today)
          const cached = percent(status.cache.hits, status.cache.hits + status.cache.misses)
          const answering = status.upstreams.filter((upstream) => upstream.ok).length
          return (
            <>
              {status.running ? null : <p className="med">{words.notRunning}</p>}
              {status.blocking.paused_until ? (
                <p className="med">{words.paused(formatTime(status.blocking.paused_until))}</p>
              ) : null}
              <dl className="kv">
                <div>
                  <dt>{words.today}</dt>
                  <dd>{formatNumber(status.queries_today)}</dd>
                </div>
                <div>
                  <dt>{words.blocked}</dt>
                  <dd>
                    {formatNumber(status.blocked_today)}{' '}
                    {blocked === null ? null : <span className="dim sm">{blocked} %</span>}
                  </dd>
                </div>
                <div>
                  <dt>{words.cached}</dt>
                  <dd>{cached === null ? '-' : `${cached} %`}</dd>
                </div>
              </dl>
              <p className="sm dim">{words.upstreams(answering, status.upstreams.length)}</p>
              <Queries />
            </>
          )
        }}
      </Loaded>
    </Section>
  )
}

function Queries() {
  const text = useText()
  const points = useHistory('dns')
  if (points.length < 2) return <p className="sm dim">{text.overview.dns.soon}</p>
  const all = points.map((point) => (point.rates[0] ?? 0) * 60)
  const format = (value: number) => formatNumber(value, value < 10 ? 1 : 0)
  return (
    <TimeChart
      summary={text.overview.dns.perMinute(format(Math.max(...all)))}
      times={points.map((point) => point.time / 1000)}
      height={84}
      format={format}
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
