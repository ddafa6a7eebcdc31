// The tunnels: state, last handshake, rates, and the policies that use them.

import type { Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { Link } from '@/app/link'
import { latest, useCounters, useHistory } from '@/components/history'
import { Empty, Loaded, Section } from '@/components/section'
import { Sparkline } from '@/components/sparkline'
import { StateWord } from '@/components/state'
import { useAge, useNow } from '@/components/time'
import { useText } from '@/text'
import { formatAge, formatRate } from '@/text/format'
import { hopsOf, tunnelState } from './flow-model'

type Tunnel = Schemas['Tunnel']

/** Tunnels that are shown here. Those with trouble come first. */
const MOST = 6

export function TunnelStrip() {
  const text = useText()
  const query = useGet('/tunnels', {}, { every: 3000 })
  const policies = useGet('/routing/policies', {}, { every: 5000 }).data?.data
  useCounters(query.dataUpdatedAt, () =>
    (query.data?.data ?? []).flatMap((tunnel) =>
      tunnel.rx_bytes === undefined || tunnel.tx_bytes === undefined
        ? []
        : [[`tunnel.${tunnel.id}`, [tunnel.rx_bytes, tunnel.tx_bytes]] as const],
    ),
  )
  return (
    <Section
      title={text.overview.tunnels.title}
      actions={
        <Link className="link" to="/paths">
          {text.overview.tunnels.all}
        </Link>
      }
    >
      <Loaded
        query={query}
        isEmpty={(tunnels) => tunnels.length === 0}
        empty={<Empty command="gateway-ctl tunnels">{text.overview.tunnels.empty}</Empty>}
      >
        {(tunnels) => {
          const sorted = [...tunnels].sort((one, other) => rank(one) - rank(other))
          return (
            <>
              <ul className="rows rows--tun">
                {sorted.slice(0, MOST).map((tunnel) => (
                  <TunnelRow
                    key={tunnel.id}
                    tunnel={tunnel}
                    users={(policies ?? [])
                      .filter(
                        (policy) =>
                          policy.enabled &&
                          hopsOf(policy).some((hop) => hop.type === 'vpn' && hop.target === tunnel.name),
                      )
                      .map((policy) => policy.name)}
                  />
                ))}
              </ul>
              {sorted.length > MOST ? (
                <Link className="link" to="/paths">
                  {text.overview.tunnels.more(sorted.length - MOST)}
                </Link>
              ) : null}
            </>
          )
        }}
      </Loaded>
    </Section>
  )
}

/** Two rates; the unit stands once if both have it: `29.4 / 1.6 Mbit/s`. */
export function ratePair(down: number, up: number): string {
  const [one, other] = [formatRate(down), formatRate(up)]
  const unit = one.slice(one.lastIndexOf(' '))
  return other.endsWith(unit) ? `${one.slice(0, -unit.length)} / ${other}` : `${one} / ${other}`
}

function rank(tunnel: Tunnel): number {
  return { down: 0, degraded: 1, unknown: 2, ok: 3, idle: 4 }[tunnelState(tunnel) as string] ?? 5
}

function TunnelRow({ tunnel, users }: { tunnel: Tunnel; users: string[] }) {
  const text = useText()
  const words = text.overview.tunnels
  const points = useHistory(`tunnel.${tunnel.id}`)
  const rates = latest(points, useNow())
  const state = tunnelState(tunnel)
  const status = tunnel.status ?? ''
  const word = !tunnel.enabled
    ? words.disabled
    : state === 'idle'
      ? words.takenDown
      : (words.words[status] ?? (status || '-'))
  const address = tunnel.exit_ip
    ? words.exit(tunnel.exit_ip)
    : tunnel.endpoint_ip
      ? words.endpoint(tunnel.endpoint_ip)
      : null
  return (
    <li>
      <div className="two">
        <Link className="med" to={`/paths/tunnels/${tunnel.id}`}>
          {tunnel.name}
        </Link>
        <small>{[tunnel.type, address].filter(Boolean).join(', ')}</small>
      </div>
      <Sparkline
        values={points.slice(-40).map((point) => point.rates.reduce((sum, rate) => sum + rate, 0))}
      />
      <div className="two num">
        <StateWord state={state}>{word}</StateWord>
        <small>
          <Liveness tunnel={tunnel} />
        </small>
      </div>
      <small className="dim sm">
        {state === 'down' && tunnel.last_error ? `${tunnel.last_error}. ` : ''}
        {users.length > 0 ? users.slice(0, 4).join(', ') : words.unused}
        {users.length > 4 ? ` +${users.length - 4}` : ''}
      </small>
      <small className="dim sm num">
        {rates ? ratePair(rates[0] ?? 0, rates[1] ?? 0) : state === 'idle' ? '-' : words.noRates}
      </small>
    </li>
  )
}

function Liveness({ tunnel }: { tunnel: Tunnel }) {
  const text = useText()
  // The peers of a tunnel carry the time of their last handshake, which the OpenAPI document leaves out.
  const handshakes = tunnel.peers
    .map((peer) => ('last_handshake' in peer ? peer.last_handshake : null))
    .filter((time) => typeof time === 'string')
  const newest = handshakes.sort()[handshakes.length - 1]
  const age = useAge(newest)
  if (newest) return <>{text.overview.tunnels.handshake(age)}</>
  if (typeof tunnel.uptime_sec === 'number')
    return <>{text.overview.tunnels.up(formatAge(tunnel.uptime_sec, text))}</>
  return tunnel.type === 'wireguard' ? <>{text.overview.tunnels.noHandshake}</> : <>-</>
}
