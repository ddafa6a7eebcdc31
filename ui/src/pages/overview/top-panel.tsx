// Top clients and names on the first page.

import { useGet } from '@/api/query'
import { Link } from '@/app/link'
import { Loaded, Section } from '@/components/section'
import { useText } from '@/text'
import { formatNumber } from '@/text/format'
import { topClients, topNames } from './top-lists'

export function TopClients() {
  const text = useText()
  const query = useGet('/dns/clients', {}, { every: 60_000 })
  return (
    <Section title={text.top.clients} hint={text.top.hint}>
      <Loaded
        query={query}
        isEmpty={(clients) => topClients(clients).length === 0}
        empty={<p className="mid">{text.top.empty}</p>}
      >
        {(clients) => (
          <ol className="rows rows--top" aria-label={text.top.clients}>
            {topClients(clients).map(({ client, queries, blocked }) => (
              <li key={client.device_id ?? client.ip}>
                <Link to="/dns" search={{ client: client.device_id ?? client.ip }}>
                  {client.name ?? client.ip}
                </Link>
                <span className="dim sm">
                  {text.top.queries(formatNumber(queries))}, {text.top.blocked(formatNumber(blocked))}
                </span>
              </li>
            ))}
          </ol>
        )}
      </Loaded>
    </Section>
  )
}

export function TopNames() {
  const text = useText()
  const query = useGet('/dns/clients', {}, { every: 60_000 })
  return (
    <Section title={text.top.names} hint={text.top.namesHint}>
      <Loaded
        query={query}
        isEmpty={(clients) => topNames(clients).length === 0}
        empty={<p className="mid">{text.top.empty}</p>}
      >
        {(clients) => (
          <ol className="rows rows--top" aria-label={text.top.names}>
            {topNames(clients).map(({ name, queries }) => (
              <li key={name}>
                <Link to="/dns" search={{ domain: `=${name.replace(/\.$/, '')}` }}>
                  {name}
                </Link>
                <span className="dim sm">{text.top.queries(formatNumber(queries))}</span>
              </li>
            ))}
          </ol>
        )}
      </Loaded>
    </Section>
  )
}
