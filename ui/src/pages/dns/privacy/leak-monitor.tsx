// The leak monitor: what was stopped, what escaped, the last events, and routers that are not this gateway.

import { useGet, type Data } from '@/api/query'
import { Link } from '@/session/link'
import { DataTable } from '@/components/data-table'
import { LoadedSection, Loaded, Section } from '@/components/section'
import { StateWord } from '@/components/state'
import { Age, Clock } from '@/components/time'
import { useText } from '@/text'
import { formatBytes, formatNumber, formatTime } from '@/text/format'
import { endpoint, protocolName } from './totals'

export function LeakMonitor() {
  const text = useText()
  const { monitor } = text.dns.privacy
  const query = useGet('/privacy/leak-monitor', {}, { every: 5000 })
  const data = query.data?.data
  return (
    <div id="monitor" className="stack">
      <Section
        title={monitor.title}
        hint={
          data?.since
            ? monitor.hint(formatTime(data.since), `${formatNumber(data.observed_pct, 1)} %`)
            : undefined
        }
      >
        <p className="dim sm">{monitor.legend}</p>
        <Loaded
          query={query}
          isEmpty={(leaks) => leaks.counters.length === 0}
          empty={<p className="mid">{monitor.empty}</p>}
        >
          {(leaks) => <CounterTable leaks={leaks} />}
        </Loaded>
      </Section>
      <LoadedSection
        title={monitor.events}
        hint={monitor.eventsHint}
        query={query}
        isEmpty={(leaks) => leaks.last_events.length === 0}
        empty={<p className="mid">{monitor.noEvents}</p>}
      >
        {(leaks) => <EventTable leaks={leaks} />}
      </LoadedSection>
      <LoadedSection
        title={monitor.routers}
        hint={monitor.routersHint}
        query={query}
        isEmpty={(leaks) => leaks.foreign_routers.length === 0}
        empty={<p className="mid">{monitor.noRouters}</p>}
      >
        {(leaks) => <RouterTable leaks={leaks} />}
      </LoadedSection>
    </div>
  )
}

type Leaks = Data<'/privacy/leak-monitor'>

function CounterTable({ leaks }: { leaks: Leaks }) {
  const { monitor } = useText().dns.privacy
  const { columns } = monitor
  const policies = useGet('/routing/policies', {}, { every: 60_000 }).data?.data ?? []
  const nameOf = (id: string | null) =>
    id === null ? monitor.noPolicy : (policies.find((each) => each.id === id)?.name ?? id)
  const number = (key: keyof typeof columns, of: 'wrong_egress_packets' | Counter) => ({
    head: columns[key],
    sort: of,
    numeric: true,
    cell: (row: Row) => formatNumber(row[of]),
  })
  return (
    <DataTable
      dense
      label={monitor.title}
      rows={leaks.counters}
      id={(row) => row.policy_id ?? ''}
      columns={[
        {
          head: columns.policy,
          sort: (row) => nameOf(row.policy_id),
          bare: true,
          cell: (row) =>
            row.policy_id === null ? (
              <span className="mid">{monitor.noPolicy}</span>
            ) : (
              <Link to={`/policies/${row.policy_id}`} className="med">
                {nameOf(row.policy_id)}
              </Link>
            ),
        },
        {
          head: columns.escaped,
          sort: 'escaped_packets',
          numeric: true,
          cell: (row) =>
            row.escaped_packets > 0 ? (
              <StateWord state="leak">{formatNumber(row.escaped_packets)}</StateWord>
            ) : (
              formatNumber(0)
            ),
        },
        number('wrongEgress', 'wrong_egress_packets'),
        number('dns', 'dns_bypass'),
        number('doh', 'doh_hits'),
        number('stun', 'stun_blocked'),
        number('ipv6', 'ipv6_blocked'),
        number('quic', 'quic_blocked'),
        number('discovery', 'discovery_dropped'),
        number('ntp', 'ntp_redirected'),
        { head: columns.bytes, sort: 'bytes', numeric: true, cell: (row) => formatBytes(row.bytes) },
      ]}
    />
  )
}

function EventTable({ leaks }: { leaks: Leaks }) {
  const { monitor } = useText().dns.privacy
  const { eventColumns: columns } = monitor
  const policies = useGet('/routing/policies', {}, { every: 60_000 }).data?.data ?? []
  const devices = useGet('/devices', {}, { every: 60_000 }).data?.data ?? []
  const deviceOf = (slot: number) => devices.find((each) => each.slot === slot)
  return (
    <DataTable
      dense
      label={monitor.events}
      rows={[...leaks.last_events].reverse().map((event, index) => ({ ...event, index }))}
      id={(row) => `${row.boot_ns} ${row.index}`}
      columns={[
        {
          head: columns.reason,
          sort: 'reason',
          cell: (row) => (
            <StateWord state={row.action === 'drop' ? 'blocked' : 'idle'}>{row.reason}</StateWord>
          ),
        },
        {
          head: columns.device,
          sort: (row) => deviceOf(row.device)?.name ?? '',
          cell: (row) => {
            const device = row.device === 0 ? undefined : deviceOf(row.device)
            return device ? <Link to={`/devices/${device.id}`}>{device.name}</Link> : '-'
          },
        },
        {
          head: columns.policy,
          sort: (row) =>
            row.policy === 0
              ? '-'
              : (policies.find((each) => each.slot === row.policy)?.name ?? String(row.policy)),
        },
        {
          head: columns.from,
          cell: (row) => <span className="mono sm">{endpoint(row.source, row.source_port)}</span>,
        },
        {
          head: columns.to,
          cell: (row) => <span className="mono sm">{endpoint(row.destination, row.destination_port)}</span>,
        },
        { head: columns.protocol, sort: (row) => protocolName(row.protocol) },
        { head: columns.action, sort: (row) => (row.guard ? monitor.guard : row.action) },
        { head: columns.size, sort: 'length', numeric: true },
      ]}
    />
  )
}

function RouterTable({ leaks }: { leaks: Leaks }) {
  const { monitor } = useText().dns.privacy
  const { routerColumns: columns } = monitor
  return (
    <DataTable
      dense
      label={monitor.routers}
      rows={leaks.foreign_routers}
      id={(row) => `${row.interface} ${row.address}`}
      columns={[
        {
          head: columns.address,
          sort: 'address',
          bare: true,
          cell: (row) => (
            <span className="two">
              <span className="mono">{row.address}</span>
              <small className="mono">{row.mac}</small>
            </span>
          ),
        },
        { head: columns.interface, sort: 'interface' },
        {
          head: columns.prefixes,
          cell: (row) => <span className="mono sm">{row.prefixes.join(', ') || '-'}</span>,
        },
        { head: columns.seen, sort: 'last_seen', cell: (row) => <Age time={row.last_seen} /> },
        { head: columns.until, sort: 'until', cell: (row) => <Clock time={row.until} /> },
      ]}
    />
  )
}

type Counter =
  | 'dns_bypass'
  | 'doh_hits'
  | 'stun_blocked'
  | 'ipv6_blocked'
  | 'quic_blocked'
  | 'discovery_dropped'
  | 'ntp_redirected'

type Row = Record<Counter | 'wrong_egress_packets', number>
