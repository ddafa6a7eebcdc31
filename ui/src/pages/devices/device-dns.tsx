// The newest DNS queries of a device.

import type { Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { Link } from '@/session/link'
import { Empty, Loaded, Section } from '@/components/section'
import { StateWord, type State } from '@/components/state'
import { Clock } from '@/components/time'
import { Table } from '@/components/table'
import { useText } from '@/text'
import { formatNumber } from '@/text/format'

/** Queries that are shown; the log has all. */
const MOST = 100

export function queryState(status: string): State | null {
  if (status === 'blocked' || status === 'refused') return 'blocked'
  if (status === 'error') return 'degraded'
  return null
}

export function DeviceDns({ device }: { device: Schemas['Device'] }) {
  const text = useText()
  const words = text.devices.dns
  const query = useGet('/dns/log', { query: { client: device.id, limit: MOST } }, { every: 5000 })
  return (
    <Section
      title={text.devices.tabs.dns}
      hint={words.newest(MOST)}
      actions={
        <Link className="link" to="/dns" search={{ client: device.id }}>
          {text.overview.dns.log}
        </Link>
      }
    >
      <Counted device={device} />
      <Loaded query={query} lines={8} empty={<Empty>{words.empty}</Empty>}>
        {(entries) => (
          <Table
            label={text.devices.tabs.dns}
            rows={entries}
            id={(each) => each.id}
            dense
            columns={[
              { head: words.time, bare: true, cell: (each) => <Clock time={each.time} seconds /> },
              { head: words.name, className: 'wrap', cell: (each) => each.question.name },
              { head: words.type, cell: (each) => each.question.type },
              { head: words.status, cell: (each) => <QueryStatus status={each.status} /> },
              {
                head: words.by,
                className: 'dim',
                cell: (each) => [each.reason, each.rule ?? each.upstream].filter(Boolean).join(' ') || '-',
              },
              {
                head: words.elapsed,
                numeric: true,
                cell: (each) => <>{formatNumber(each.elapsed_ms, 1)} ms</>,
              },
              {
                head: <span className="sr">{text.common.actions}</span>,
                className: 'num',
                cell: (each) => (
                  <Link
                    className="link"
                    to={`/devices/${device.id}`}
                    search={{ domain: each.question.name.replace(/\.$/, '') }}
                  >
                    {text.overview.why}
                  </Link>
                ),
              },
            ]}
          />
        )}
      </Loaded>
    </Section>
  )
}

/** Counters of the resolver for a device. */
function Counted({ device }: { device: Schemas['Device'] }) {
  const text = useText()
  const clients = useGet('/dns/clients', {}, { every: 30_000 }).data?.data
  if (!clients) return null
  const own = clients.filter(({ client }) => client.device_id === device.id)
  if (own.length === 0) return <p className="dim sm">{text.top.deviceNone}</p>
  const sum = (count: 'queries' | 'blocked' | 'cached') =>
    formatNumber(own.reduce((all, each) => all + each[count], 0))
  return <p className="mid">{text.top.device(sum('queries'), sum('blocked'), sum('cached'))}</p>
}

function QueryStatus({ status }: { status: string }) {
  const state = queryState(status)
  return state ? <StateWord state={state}>{status}</StateWord> : <>{status}</>
}
