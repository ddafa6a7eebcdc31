// The newest DNS queries of a device.

import type { Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { Link } from '@/session/link'
import { Empty, Loaded, Section } from '@/components/section'
import { StateWord, type State } from '@/components/state'
import { Clock } from '@/components/time'
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
      <Loaded
        query={query}
        lines={8}
        isEmpty={(entries) => entries.length === 0}
        empty={<Empty>{words.empty}</Empty>}
      >
        {(entries) => (
          <table className="tbl tbl--card tbl--dense" aria-label={text.devices.tabs.dns}>
            <thead>
              <tr>
                <th scope="col">{words.time}</th>
                <th scope="col">{words.name}</th>
                <th scope="col">{words.type}</th>
                <th scope="col">{words.status}</th>
                <th scope="col">{words.by}</th>
                <th scope="col" className="num">
                  {words.elapsed}
                </th>
                <th scope="col">
                  <span className="sr">{text.common.actions}</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {entries.map((each) => {
                const state = queryState(each.status)
                return (
                  <tr key={each.id}>
                    <td>
                      <Clock time={each.time} seconds />
                    </td>
                    <td data-l={words.name} className="wrap">
                      {each.question.name}
                    </td>
                    <td data-l={words.type}>{each.question.type}</td>
                    <td data-l={words.status}>
                      {state ? <StateWord state={state}>{each.status}</StateWord> : each.status}
                    </td>
                    <td data-l={words.by} className="dim">
                      {[each.reason, each.rule ?? each.upstream].filter(Boolean).join(' ') || '-'}
                    </td>
                    <td data-l={words.elapsed} className="num">
                      {formatNumber(each.elapsed_ms, 1)} ms
                    </td>
                    <td className="num">
                      <Link
                        className="link"
                        to={`/devices/${device.id}`}
                        search={{ domain: each.question.name.replace(/\.$/, '') }}
                      >
                        {text.overview.why}
                      </Link>
                    </td>
                  </tr>
                )
              })}
            </tbody>
          </table>
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
