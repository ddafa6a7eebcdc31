// The alerts of the last 30 days that are resolved.

import { useGet } from '@/api/query'
import { Button } from '@/components/button'
import { LoadedSection } from '@/components/section'
import { Table } from '@/components/table'
import { Clock } from '@/components/time'
import { useSearchParams } from '@/session/search-params'
import { useText } from '@/text'
import { formatNumber } from '@/text/format'
import { AlertName } from './alert-row'
import type { Alert } from './alert-groups'

const PAGE = 50

export function ResolvedAlerts() {
  const words = useText().alerts
  const [{ before }] = useSearchParams()
  const query = useGet('/alerts', { query: { status: 'resolved', limit: PAGE, before } }, { every: 15_000 })
  return (
    <LoadedSection
      title={words.resolvedTitle}
      hint={words.resolvedHint}
      query={query}
      empty={<p className="quiet">{words.noneResolved}</p>}
    >
      {(alerts) => (
        <>
          <Table
            label={words.resolvedTitle}
            rows={alerts}
            id={(alert) => alert.id}
            columns={[
              { head: words.alert, bare: true, cell: (alert) => <AlertName alert={alert} /> },
              { head: words.started, cell: (alert) => <Clock time={alert.first_seen} seconds /> },
              {
                head: words.ended,
                cell: (alert) => (alert.resolved_at ? <Clock time={alert.resolved_at} seconds /> : '-'),
              },
              { head: words.endedBy, cell: (alert) => alert.resolved_by ?? words.byItself },
              { head: words.count, numeric: true, cell: (alert) => formatNumber(alert.count) },
            ]}
          />
          <Pager alerts={alerts} />
        </>
      )}
    </LoadedSection>
  )
}

function Pager({ alerts }: { alerts: readonly Alert[] }) {
  const words = useText().alerts
  const [{ before }, change] = useSearchParams()
  const last = alerts.at(-1)
  const more = last && alerts.length === PAGE
  if (!more && before === undefined) return null
  return (
    <p className="pager">
      {before === undefined ? null : (
        <Button size="small" onClick={() => change({ before: undefined })}>
          {words.newest}
        </Button>
      )}
      {more ? (
        <Button size="small" onClick={() => change({ before: String(last.id) })}>
          {words.older}
        </Button>
      ) : null}
    </p>
  )
}
