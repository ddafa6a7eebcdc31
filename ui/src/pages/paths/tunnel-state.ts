// The state of a tunnel in words.

import type { Schemas } from '@/api/client'
import type { State } from '@/components/state'

type Tunnel = Schemas['Tunnel']

/** Word of a state; others are those of the daemon and shown as they are. */
export type Word =
  | 'up'
  | 'unhealthy'
  | 'degraded'
  | 'connecting'
  | 'disconnecting'
  | 'down'
  | 'error'
  | 'taken_down'
  | 'disabled'

export interface TunnelState {
  state: State
  word: Word | (string & {})
  /** Policies may use it. */
  usable: boolean
}

type Stated = Pick<Tunnel, 'enabled' | 'admin_state' | 'status' | 'health'>

const STATES: Record<string, State> = {
  up: 'ok',
  degraded: 'degraded',
  connecting: 'down',
  disconnecting: 'down',
  down: 'down',
  error: 'down',
}

/** A tunnel that was taken down on purpose is idle; one that should be up and is not is down. */
export function stateOf(tunnel: Stated): TunnelState {
  if (!tunnel.enabled) return { state: 'idle', word: 'disabled', usable: false }
  const status = tunnel.status
  if (tunnel.admin_state === 'down' && status !== 'up' && status !== 'degraded')
    return { state: 'idle', word: 'taken_down', usable: false }
  if (status === undefined) return { state: 'unknown', word: 'unknown', usable: false }
  if (status === 'up' && tunnel.health === 'unhealthy')
    return { state: 'degraded', word: 'unhealthy', usable: false }
  return { state: STATES[status] ?? 'unknown', word: status, usable: status === 'up' }
}

/** State of a tunnel in the list of egresses, which also knows tunnels that no longer exist. */
export function stateOfEgress(state: string): State {
  return state === 'missing' ? 'down' : (STATES[state] ?? 'unknown')
}

/** A peer with what the daemon measures of it. */
export interface PeerFacts {
  handshake: string | null
  received: number | null
  sent: number | null
}

/** The measured fields of a peer, which stand in the answers beside the configured ones. */
export function peerFacts(peer: Schemas['Peer']): PeerFacts {
  const fields: Record<string, unknown> = { ...peer }
  const number = (value: unknown) => (typeof value === 'number' ? value : null)
  return {
    handshake: typeof fields.last_handshake === 'string' ? fields.last_handshake : null,
    received: number(fields.rx),
    sent: number(fields.tx),
  }
}

/** The latest handshake of all peers; `null` if there was none. */
export function lastHandshake(tunnel: Pick<Tunnel, 'peers'>): string | null {
  const times = (tunnel.peers ?? []).map((peer) => peerFacts(peer).handshake).filter((time) => time !== null)
  return times.sort().at(-1) ?? null
}

/** Address of the remote end, as it is in use, else as it is configured. */
export function remoteOf(tunnel: Tunnel): string | null {
  const configured = tunnel.peers?.map((peer) => peer.endpoint).find((endpoint) => endpoint !== null)
  return configured ?? tunnel.remotes?.[0] ?? tunnel.endpoint_ip ?? null
}
