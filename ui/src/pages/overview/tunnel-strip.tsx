// The tunnels: state, last handshake, rates, and the policies that use them.

import type { Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { Link } from '@/session/link'
import { latest, useCounters, useHistory } from '@/components/history'
import { LoadedSection, Empty } from '@/components/section'
import { Sparkline } from '@/components/sparkline'
import { StateWord } from '@/components/state'
import { useAge, useNow } from '@/components/time'
import { TwoLines } from '@/components/two-lines'
import { useText } from '@/text'
import { formatAge, formatRate } from '@/text/format'
import { counterOf, tunnelState } from './flow-model'
import { useGraph } from './flow-section'
import { lastMinutes } from './minutes'

type Tunnel = Schemas['Tunnel']

/** Length of the small charts. */
const MINUTES = 60

/** Tunnels that are shown here. Those with trouble come first. */
const MOST = 6

export function TunnelStrip() {
  const text = useText()
  const query = useGet('/tunnels')
  const graph = useGraph().data?.data
  const recorded = useGet('/tunnels/history', { query: { minutes: MINUTES + 1 } }, { every: 60_000 }).data
    ?.data
  useCounters(query.dataUpdatedAt, () =>
    (query.data?.data ?? []).flatMap((tunnel) =>
      tunnel.rx_bytes === undefined || tunnel.tx_bytes === undefined
        ? []
        : [[`tunnel.${tunnel.id}`, [tunnel.rx_bytes, tunnel.tx_bytes]] as const],
    ),
  )
  return (
    <LoadedSection
      title={text.overview.tunnels.title}
      actions={
        <Link className="link" to="/paths">
          {text.overview.tunnels.all}
        </Link>
      }
      query={query}
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
                  hop={graph?.hops.find((each) => each.id === tunnel.id)}
                  recorded={recorded?.find((each) => each.tunnel_id === tunnel.id)}
                  users={(graph?.policies ?? [])
                    .filter((policy) =>
                      policy.hops.some((hop) => hop.type === 'vpn' && hop.target === tunnel.name),
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
    </LoadedSection>
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

interface RowProps {
  tunnel: Tunnel
  /** The same in the graph of paths, which is read more often. */
  hop: Schemas['PathHop'] | undefined
  recorded: Schemas['RecordedTunnel'] | undefined
  users: string[]
}

function TunnelRow({ tunnel, hop, recorded, users }: RowProps) {
  const text = useText()
  const words = text.overview.tunnels
  const now = useNow()
  const counted = useHistory(`tunnel.${tunnel.id}`)
  const seen = useHistory(hop ? counterOf.hop(hop) : '')
  const points = hop && seen.length > 0 ? seen : counted
  const minutes = recorded?.minutes ?? []
  const values =
    minutes.length > 0 ? lastMinutes(minutes, MINUTES, now, (each) => each.rx_bytes + each.tx_bytes) : null
  const state = tunnelState(tunnel)
  // Before two reads, the mean of the last whole minute. A tunnel that is not up has no rate.
  const minute = minutes.at(-2)
  const recent = minute ? [minute.rx_bytes / 60, minute.tx_bytes / 60] : null
  const rates = state === 'ok' || state === 'degraded' ? (latest(points, now, 45_000) ?? recent) : null
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
      <TwoLines second={[tunnel.type, address].filter(Boolean).join(', ')}>
        <Link className="med" to={`/paths/tunnels/${tunnel.id}`}>
          {tunnel.name}
        </Link>
      </TwoLines>
      <Spark minutes={values} points={points} />
      <div className="two num">
        <StateWord state={state}>{word}</StateWord>
        <small>
          <Liveness tunnel={tunnel} newer={hop?.last_handshake ?? null} />
        </small>
      </div>
      <small className="dim sm">
        {state === 'down' && tunnel.last_error ? `${tunnel.last_error}. ` : ''}
        {users.length > 0 ? users.slice(0, 4).join(', ') : words.unused}
        {users.length > 4 ? ` +${users.length - 4}` : ''}
      </small>
      <small className="dim sm num">
        {rates ? ratePair(rates[0] ?? 0, rates[1] ?? 0) : state === 'ok' ? words.noRates : '-'}
      </small>
    </li>
  )
}

function Liveness({ tunnel, newer }: { tunnel: Tunnel; newer: string | null }) {
  const text = useText()
  // The peers of a tunnel carry the time of their last handshake, which the OpenAPI document leaves out.
  const handshakes = tunnel.peers
    .map((peer) => ('last_handshake' in peer ? peer.last_handshake : null))
    .filter((time) => typeof time === 'string')
  const newest = [...handshakes, ...(newer ? [newer] : [])].sort().at(-1)
  const age = useAge(newest)
  if (newest) return <>{text.overview.tunnels.handshake(age)}</>
  if (typeof tunnel.uptime_sec === 'number')
    return <>{text.overview.tunnels.up(formatAge(tunnel.uptime_sec, text))}</>
  return tunnel.type === 'wireguard' ? <>{text.overview.tunnels.noHandshake}</> : <>-</>
}

interface SparkProps {
  /** The rates of each minute of the last hour, if they were recorded. */
  minutes: Parameters<typeof Sparkline>[0]['values'] | null
  /** The rates since the page was opened. */
  points: readonly { rates: readonly number[] }[]
}

function Spark({ minutes, points }: SparkProps) {
  const words = useText().overview.tunnels
  const label = minutes ? words.lastHour : words.sinceOpened
  return (
    <span className="sparkbox" title={label}>
      {minutes ? (
        <Sparkline values={minutes} most={MINUTES} />
      ) : (
        <Sparkline
          values={points.slice(-40).map(({ rates }) => rates.reduce((sum, rate) => sum + rate, 0))}
        />
      )}
      <span className="sr">{label}</span>
    </span>
  )
}
