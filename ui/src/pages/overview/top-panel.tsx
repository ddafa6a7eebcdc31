// Top clients and names on the first page.

import { useGet } from '@/api/query'
import { Link } from '@/session/link'
import { LoadedSection } from '@/components/section'
import { useText } from '@/text'
import { formatNumber } from '@/text/format'
import { topClients, topNames } from './top-lists'

type Clients = Parameters<typeof topClients>[0]

export function TopClients() {
  const text = useText()
  const rows = (clients: Clients) =>
    topClients(clients).map(({ client, queries, blocked }) => ({
      key: client.device_id ?? client.ip,
      name: client.name ?? client.ip,
      search: { client: client.device_id ?? client.ip },
      counts: `${text.top.queries(formatNumber(queries))}, ${text.top.blocked(formatNumber(blocked))}`,
    }))
  return <TopList title={text.top.clients} hint={text.top.hint} rows={rows} />
}

export function TopNames() {
  const text = useText()
  const rows = (clients: Clients) =>
    topNames(clients).map(({ name, queries }) => ({
      key: name,
      name,
      search: { domain: `=${name.replace(/\.$/, '')}` },
      counts: text.top.queries(formatNumber(queries)),
    }))
  return <TopList title={text.top.names} hint={text.top.namesHint} rows={rows} />
}

interface Row {
  key: string
  name: string
  /** Filter of the query log. */
  search: { client: string } | { domain: string }
  counts: string
}

function TopList({ title, hint, rows }: { title: string; hint: string; rows: (clients: Clients) => Row[] }) {
  const text = useText()
  const query = useGet('/dns/clients', {}, { every: 60_000 })
  return (
    <LoadedSection
      title={title}
      hint={hint}
      query={query}
      isEmpty={(clients) => rows(clients).length === 0}
      empty={<p className="mid">{text.top.empty}</p>}
    >
      {(clients) => (
        <ol className="rows rows--top" aria-label={title}>
          {rows(clients).map(({ key, name, search, counts }) => (
            <li key={key}>
              <Link to="/dns" search={search}>
                {name}
              </Link>
              <span className="dim sm">{counts}</span>
            </li>
          ))}
        </ol>
      )}
    </LoadedSection>
  )
}
