// The leak monitor: what was stopped, what escaped, the last events, and routers that are not this gateway.

import { useGet } from '@/api/query'
import { Link } from '@/session/link'
import { DataTable } from '@/components/data-table'
import { Loaded, Section } from '@/components/section'
import { StateWord } from '@/components/state'
import { Age, Clock } from '@/components/time'
import { useText } from '@/text'
import { formatBytes, formatNumber, formatTime } from '@/text/format'
import { endpoint, protocolName } from './totals'

export function LeakMonitor() {
  const text = useText()
  const { monitor } = text.dns.privacy
  const query = useGet('/privacy/leak-monitor', {}, { every: 5000 })
  const policies = useGet('/routing/policies', {}, { every: 60_000 }).data?.data ?? []
  const devices = useGet('/devices', {}, { every: 60_000 }).data?.data ?? []
  const { columns } = monitor
  const nameOf = (id: string | null) =>
    id === null ? monitor.noPolicy : (policies.find((each) => each.id === id)?.name ?? id)
  const data = query.data?.data
  const number = (key: keyof typeof columns, of: 'wrong_egress_packets' | Counter) => ({
    id: key,
    accessorKey: of,
    header: columns[key],
    meta: { numeric: true },
    cell: ({ row }: { row: { original: Row } }) => formatNumber(row.original[of]),
  })
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
          {(leaks) => (
            <DataTable
              dense
              label={monitor.title}
              rows={leaks.counters}
              id={(row) => row.policy_id ?? ''}
              columns={[
                {
                  id: 'policy',
                  header: columns.policy,
                  accessorFn: (row) => nameOf(row.policy_id),
                  meta: { label: '' },
                  cell: ({ row: { original } }) =>
                    original.policy_id === null ? (
                      <span className="mid">{monitor.noPolicy}</span>
                    ) : (
                      <Link to={`/policies/${original.policy_id}`} className="med">
                        {nameOf(original.policy_id)}
                      </Link>
                    ),
                },
                {
                  id: 'escaped',
                  accessorKey: 'escaped_packets',
                  header: columns.escaped,
                  meta: { numeric: true },
                  cell: ({ row: { original } }) =>
                    original.escaped_packets > 0 ? (
                      <StateWord state="leak">{formatNumber(original.escaped_packets)}</StateWord>
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
                {
                  id: 'bytes',
                  accessorKey: 'bytes',
                  header: columns.bytes,
                  meta: { numeric: true },
                  cell: ({ row }) => formatBytes(row.original.bytes),
                },
              ]}
            />
          )}
        </Loaded>
      </Section>
      <Section title={monitor.events} hint={monitor.eventsHint}>
        <Loaded
          query={query}
          isEmpty={(leaks) => leaks.last_events.length === 0}
          empty={<p className="mid">{monitor.noEvents}</p>}
        >
          {(leaks) => (
            <DataTable
              dense
              label={monitor.events}
              rows={[...leaks.last_events].reverse().map((event, index) => ({ ...event, index }))}
              id={(row) => `${row.boot_ns} ${row.index}`}
              columns={[
                {
                  id: 'reason',
                  accessorKey: 'reason',
                  header: monitor.eventColumns.reason,
                  cell: ({ row: { original } }) => (
                    <StateWord state={original.action === 'drop' ? 'blocked' : 'idle'}>
                      {original.reason}
                    </StateWord>
                  ),
                },
                {
                  id: 'device',
                  header: monitor.eventColumns.device,
                  accessorFn: (row) => devices.find((each) => each.slot === row.device)?.name ?? '',
                  cell: ({ row: { original } }) => {
                    const device =
                      original.device === 0
                        ? undefined
                        : devices.find((each) => each.slot === original.device)
                    return device ? <Link to={`/devices/${device.id}`}>{device.name}</Link> : '-'
                  },
                },
                {
                  id: 'policy',
                  header: monitor.eventColumns.policy,
                  accessorFn: (row) =>
                    row.policy === 0
                      ? '-'
                      : (policies.find((each) => each.slot === row.policy)?.name ?? String(row.policy)),
                },
                {
                  id: 'from',
                  header: monitor.eventColumns.from,
                  enableSorting: false,
                  cell: ({ row: { original } }) => (
                    <span className="mono sm">{endpoint(original.source, original.source_port)}</span>
                  ),
                },
                {
                  id: 'to',
                  header: monitor.eventColumns.to,
                  enableSorting: false,
                  cell: ({ row: { original } }) => (
                    <span className="mono sm">
                      {endpoint(original.destination, original.destination_port)}
                    </span>
                  ),
                },
                {
                  id: 'protocol',
                  header: monitor.eventColumns.protocol,
                  accessorFn: (row) => protocolName(row.protocol),
                },
                {
                  id: 'action',
                  header: monitor.eventColumns.action,
                  accessorFn: (row) => (row.guard ? monitor.guard : row.action),
                },
                {
                  id: 'size',
                  accessorKey: 'length',
                  header: monitor.eventColumns.size,
                  meta: { numeric: true },
                },
              ]}
            />
          )}
        </Loaded>
      </Section>
      <Section title={monitor.routers} hint={monitor.routersHint}>
        <Loaded
          query={query}
          isEmpty={(leaks) => leaks.foreign_routers.length === 0}
          empty={<p className="mid">{monitor.noRouters}</p>}
        >
          {(leaks) => (
            <DataTable
              dense
              label={monitor.routers}
              rows={leaks.foreign_routers}
              id={(row) => `${row.interface} ${row.address}`}
              columns={[
                {
                  id: 'address',
                  header: monitor.routerColumns.address,
                  accessorKey: 'address',
                  meta: { label: '' },
                  cell: ({ row: { original } }) => (
                    <span className="two">
                      <span className="mono">{original.address}</span>
                      <small className="mono">{original.mac}</small>
                    </span>
                  ),
                },
                { accessorKey: 'interface', header: monitor.routerColumns.interface },
                {
                  id: 'prefixes',
                  header: monitor.routerColumns.prefixes,
                  enableSorting: false,
                  cell: ({ row }) => (
                    <span className="mono sm">{row.original.prefixes.join(', ') || '-'}</span>
                  ),
                },
                {
                  accessorKey: 'last_seen',
                  header: monitor.routerColumns.seen,
                  cell: ({ row }) => <Age time={row.original.last_seen} />,
                },
                {
                  accessorKey: 'until',
                  header: monitor.routerColumns.until,
                  cell: ({ row }) => <Clock time={row.original.until} />,
                },
              ]}
            />
          )}
        </Loaded>
      </Section>
    </div>
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
