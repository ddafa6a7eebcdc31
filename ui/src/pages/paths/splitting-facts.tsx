// What holds for all pools: the unit of splitting, DNS, and cover traffic.

import { useGet } from '@/api/query'
import { Facts } from '@/components/facts'
import { Loaded, Section } from '@/components/section'
import { StateWord, type State } from '@/components/state'
import { useText } from '@/text'
import { formatBytes, formatNumber } from '@/text/format'

export function TransportFacts() {
  const text = useText()
  const words = text.paths.splitting
  const names = words.transportFacts
  const transport = useGet('/splitting/transport')
  return (
    <Section title={words.transport}>
      <Loaded query={transport}>
        {(read) => (
          <Facts
            facts={[
              [names.mode, words.modes[read.mode] ?? read.mode],
              [names.protocols, read.protocols.join(', ')],
              [names.quic, words.quics[read.quic] ?? read.quic],
              [names.mtu, read.mtu_min === null ? null : `${read.mtu_min} B`],
              [names.mss, read.mss_clamp ? text.common.yes : text.common.no],
              [names.drain, text.common.seconds(read.drain_sec)],
            ]}
          />
        )}
      </Loaded>
    </Section>
  )
}

export function DnsOfPools() {
  const text = useText()
  const words = text.paths.splitting
  const columns = words.dnsColumns
  const dns = useGet('/splitting/dns/status')
  const mode = dns.data?.data.mode
  return (
    <Section title={words.dns} hint={mode === undefined ? null : (words.dnsModes[mode] ?? mode)}>
      <Loaded
        query={dns}
        isEmpty={(read) => read.per_endpoint.length === 0}
        empty={<p className="quiet">{words.dnsEmpty}</p>}
      >
        {(read) => (
          <table className="tbl tbl--card">
            <thead>
              <tr>
                <th scope="col">{columns.tunnel}</th>
                <th scope="col">{columns.upstreams}</th>
                <th scope="col" className="num">
                  {columns.queries}
                </th>
                <th scope="col" className="num">
                  {columns.failures}
                </th>
              </tr>
            </thead>
            <tbody>
              {read.per_endpoint.map((each) => (
                <tr key={each.tunnel}>
                  <td className="med">{each.tunnel}</td>
                  <td data-l={columns.upstreams}>{each.upstreams.join(', ') || '-'}</td>
                  <td className="num" data-l={columns.queries}>
                    {formatNumber(each.queries)}
                  </td>
                  <td className="num" data-l={columns.failures}>
                    {formatNumber(each.failures)}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </Loaded>
    </Section>
  )
}

const COVER: Record<string, State> = { active: 'ok', waiting: 'idle', off: 'idle', not_supported: 'idle' }

export function Cover() {
  const text = useText()
  const words = text.paths.splitting
  const columns = words.coverColumns
  const cover = useGet('/splitting/cover/stats')
  const percent = (value: number | null) => (value === null ? '-' : `${formatNumber(value, 1)} %`)
  return (
    <Section title={words.cover} hint={words.coverHint}>
      <Loaded query={cover}>
        {(read) => (
          <>
            <p className="mid">
              {read.enabled ? words.coverOn(percent(read.overhead_pct), read.budget_pct) : words.coverOff}
            </p>
            {read.per_tunnel.length > 0 ? (
              <table className="tbl tbl--card">
                <thead>
                  <tr>
                    <th scope="col">{columns.tunnel}</th>
                    <th scope="col">{columns.state}</th>
                    <th scope="col" className="num">
                      {columns.padding}
                    </th>
                    <th scope="col" className="num">
                      {columns.normal}
                    </th>
                    <th scope="col" className="num">
                      {columns.overhead}
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {read.per_tunnel.map((each) => (
                    <tr key={each.id}>
                      <td className="med">{each.tunnel}</td>
                      <td data-l={columns.state}>
                        <span className="two">
                          <StateWord state={COVER[each.state] ?? 'unknown'}>
                            {words.coverStates[each.state] ?? each.state}
                          </StateWord>
                          {each.note ? <small>{each.note}</small> : null}
                        </span>
                      </td>
                      <td className="num" data-l={columns.padding}>
                        {formatBytes(each.padding_bytes)}
                      </td>
                      <td className="num" data-l={columns.normal}>
                        {formatBytes(each.normal_bytes)}
                      </td>
                      <td className="num" data-l={columns.overhead}>
                        {percent(each.overhead_pct)}
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            ) : null}
          </>
        )}
      </Loaded>
    </Section>
  )
}
