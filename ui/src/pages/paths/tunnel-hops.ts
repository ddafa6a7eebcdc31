// The hops that are a tunnel.

import type { Schemas } from '@/api/client'

type Hop = Schemas['Hop']

/** Reports whether a hop is the tunnel. */
export function isHop(hop: Hop, tunnel: { id: string; name: string }): boolean {
  return hop.type === 'vpn' && (hop.target === tunnel.name || hop.target === tunnel.id)
}

/** The hops with another tunnel in place of this one. */
export function replaced(hops: readonly Hop[], tunnel: { id: string; name: string }, by: string): Hop[] {
  return hops.map((hop) => (isHop(hop, tunnel) ? { ...hop, target: by } : hop))
}
