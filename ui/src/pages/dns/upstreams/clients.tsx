// Clients of the resolver by their number of queries.

import { useGet, type Data } from '@/api/query'
import { Link } from '@/session/link'
import { DataTable } from '@/components/data-table'
import { LoadedSection } from '@/components/section'
import { Age } from '@/components/time'
import { TwoLines } from '@/components/two-lines'
import { useText } from '@/text'
import { formatNumber } from '@/text/format'

export function Clients() {
  const { clients } = useText().dns.upstreams
  const query = useGet('/dns/clients')
  return (
    <LoadedSection
      title={clients.title}
      hint={clients.hint}
      query={query}
      empty={<p className="mid">{clients.empty}</p>}
    >
      {(rows) => <ClientTable rows={rows} />}
    </LoadedSection>
  )
}

function ClientTable({ rows }: { rows: Data<'/dns/clients'> }) {
  const { clients } = useText().dns.upstreams
  const { columns } = clients
  return (
    <DataTable
      label={clients.title}
      rows={rows}
      id={(row) => row.client.device_id ?? row.client.ip}
      columns={[
        {
          head: columns.client,
          sort: (row) => row.client.name ?? row.client.ip,
          bare: true,
          cell: (row) => <ClientName client={row.client} />,
        },
        {
          head: columns.queries,
          sort: 'queries',
          sorted: 'desc',
          numeric: true,
          cell: (row) => (
            <Link to="/dns" search={{ client: row.client.device_id ?? row.client.ip }}>
              {formatNumber(row.queries)}
            </Link>
          ),
        },
        {
          head: columns.blocked,
          sort: 'blocked',
          numeric: true,
          cell: (row) => (
            <Link to="/dns" search={{ client: row.client.device_id ?? row.client.ip, status: 'blocked' }}>
              {formatNumber(row.blocked)}
            </Link>
          ),
        },
        { head: columns.cached, sort: 'cached', numeric: true, cell: (row) => formatNumber(row.cached) },
        { head: columns.seen, sort: 'last_seen', cell: (row) => <Age time={row.last_seen} /> },
        {
          head: columns.top,
          wide: true,
          cell: (row) => (
            <span className="mid sm breaks">
              {row.top
                .slice(0, 4)
                .map(({ name, queries }) => `${name} ${formatNumber(queries)}`)
                .join(', ')}
            </span>
          ),
        },
      ]}
    />
  )
}

function ClientName({ client }: { client: Data<'/dns/clients'>[number]['client'] }) {
  const name = client.name ?? client.ip
  return (
    <TwoLines second={client.name ? client.ip : null}>
      {client.device_id ? (
        <Link className="med" to={`/devices/${client.device_id}`}>
          {name}
        </Link>
      ) : (
        <span className="med">{name}</span>
      )}
    </TwoLines>
  )
}
