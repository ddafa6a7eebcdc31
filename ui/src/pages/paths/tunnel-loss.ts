// What the objects that use a tunnel do without it.

import type { Schemas } from '@/api/client'

type Hop = Schemas['Hop']
type Policy = Schemas['RoutingPolicy']

/** The outcome for the traffic of a policy, profile or chain. */
export type Loss = { then: 'others'; hops: string[] } | { then: 'blocked' | 'direct' }

/** Reports whether a hop is the tunnel. */
export function isHop(hop: Hop, tunnel: { id: string; name: string }): boolean {
  return hop.type === 'vpn' && (hop.target === tunnel.name || hop.target === tunnel.id)
}

interface Way {
  hops: readonly Hop[]
  splitting?: boolean
  hop_mode?: string
  fail_policy?: Policy['fail_policy']
}

/** Returns what becomes of traffic whose hops lose the tunnel. Of a path, each hop is needed. */
export function lossOf(way: Way, tunnel: { id: string; name: string }): Loss {
  const left = way.hops.filter((hop) => !isHop(hop, tunnel))
  const degraded = way.fail_policy === 'fail-degraded'
  if (left.length > 0 && (way.splitting || way.hop_mode === 'failover' || degraded))
    return { then: 'others', hops: left.map((hop) => hop.target) }
  return { then: way.fail_policy === 'fail-open' ? 'direct' : 'blocked' }
}

/** The hops with another tunnel in place of this one. */
export function replaced(hops: readonly Hop[], tunnel: { id: string; name: string }, by: string): Hop[] {
  return hops.map((hop) => (isHop(hop, tunnel) ? { ...hop, target: by } : hop))
}
