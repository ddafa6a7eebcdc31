// Clients of the resolver by their number of queries.

import { useGet } from '@/api/query'
import { Link } from '@/session/link'
import { DataTable } from '@/components/data-table'
import { Loaded, Section } from '@/components/section'
import { Age } from '@/components/time'
import { useText } from '@/text'
import { formatNumber } from '@/text/format'

export function Clients() {
  const text = useText()
  const { clients } = text.dns.upstreams
  const { columns } = clients
  const query = useGet('/dns/clients')
  return (
    <Section title={clients.title} hint={clients.hint}>
      <Loaded
        query={query}
        isEmpty={(rows) => rows.length === 0}
        empty={<p className="mid">{clients.empty}</p>}
      >
        {(rows) => (
          <DataTable
            label={clients.title}
            rows={rows}
            id={(row) => row.client.device_id ?? row.client.ip}
            sorting={[{ id: 'queries', desc: true }]}
            columns={[
              {
                id: 'client',
                header: columns.client,
                accessorFn: (row) => row.client.name ?? row.client.ip,
                meta: { label: '' },
                cell: ({ row: { original } }) => (
                  <span className="two">
                    {original.client.device_id ? (
                      <Link className="med" to={`/devices/${original.client.device_id}`}>
                        {original.client.name ?? original.client.ip}
                      </Link>
                    ) : (
                      <span className="med">{original.client.name ?? original.client.ip}</span>
                    )}
                    {original.client.name ? <small>{original.client.ip}</small> : null}
                  </span>
                ),
              },
              {
                id: 'queries',
                accessorKey: 'queries',
                header: columns.queries,
                meta: { numeric: true },
                cell: ({ row: { original } }) => (
                  <Link to="/dns" search={{ client: original.client.device_id ?? original.client.ip }}>
                    {formatNumber(original.queries)}
                  </Link>
                ),
              },
              {
                accessorKey: 'blocked',
                header: columns.blocked,
                meta: { numeric: true },
                cell: ({ row: { original } }) => (
                  <Link
                    to="/dns"
                    search={{
                      client: original.client.device_id ?? original.client.ip,
                      status: 'blocked',
                    }}
                  >
                    {formatNumber(original.blocked)}
                  </Link>
                ),
              },
              {
                accessorKey: 'cached',
                header: columns.cached,
                meta: { numeric: true },
                cell: ({ row }) => formatNumber(row.original.cached),
              },
              {
                id: 'seen',
                accessorKey: 'last_seen',
                header: columns.seen,
                cell: ({ row }) => <Age time={row.original.last_seen} />,
              },
              {
                id: 'top',
                header: columns.top,
                enableSorting: false,
                meta: { wide: true },
                cell: ({ row }) => (
                  <span className="mid sm breaks">
                    {row.original.top
                      .slice(0, 4)
                      .map(({ name, queries }) => `${name} ${formatNumber(queries)}`)
                      .join(', ')}
                  </span>
                ),
              },
            ]}
          />
        )}
      </Loaded>
    </Section>
  )
}
