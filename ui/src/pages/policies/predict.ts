// What a policy does while its hops fail, by its own words: for a draft that the daemon does not have yet.

import type { State } from '@/components/state'
import { type Draft, type FailPolicy, type Hop, hopUse } from './model'

/** Situations, in the order in which they are shown. */
export const SITUATIONS = ['up', 'first', 'down', 'boot'] as const
export type Situation = (typeof SITUATIONS)[number]

export interface Prediction {
  state: State
  /** Targets that the traffic takes, in order; empty for none and for the default route. */
  via: string[]
}

/** A profile, a chain or a class may decide instead of the policy. */
export interface Resolved {
  hops: readonly Hop[]
  splitting: boolean
  hop_mode: string
  fail_policy: FailPolicy
}

const STRICTNESS: Record<string, number> = { 'fail-open': 0, 'fail-degraded': 1, 'fail-closed': 2 }

/** The one that lets less through. */
export function stricter(one: FailPolicy, other: FailPolicy | undefined): FailPolicy {
  return other !== undefined && (STRICTNESS[other] ?? 2) > (STRICTNESS[one] ?? 2) ? other : one
}

/** A policy with what it takes from its profile, its chain and its privacy class. */
export function resolve(
  draft: Pick<Draft, 'hops' | 'splitting' | 'hop_mode' | 'fail_policy'>,
  profile?: { hops: Hop[]; splitting: boolean; hop_mode: string; fail_policy: FailPolicy },
  chain?: { hops: Hop[] },
  floor?: FailPolicy,
): Resolved {
  const own = draft.fail_policy ?? profile?.fail_policy ?? 'fail-closed'
  const fail_policy = stricter(own, floor)
  if (chain) return { hops: chain.hops, splitting: false, hop_mode: 'path', fail_policy }
  if (draft.hops.length === 0 && profile)
    return { hops: profile.hops, splitting: profile.splitting, hop_mode: profile.hop_mode, fail_policy }
  return { hops: draft.hops, splitting: draft.splitting, hop_mode: draft.hop_mode, fail_policy }
}

/** What happens to the traffic in a situation. */
export function predict(way: Resolved, situation: Situation): Prediction {
  if (situation === 'boot') return { state: 'blocked', via: [] }
  const { hops, fail_policy } = way
  if (hops.length === 0) return without(fail_policy)
  if (situation === 'up') return through(way, hops)
  const left = situation === 'first' ? hops.slice(1) : hops.filter((hop) => hop.type === 'interface')
  if (hopUse(way) === 'failover' && left.length > 0) return through(way, left)
  const carriers = left.filter((hop) => hop.type !== 'interface')
  const shared = hopUse(way) === 'split' && left.some((hop) => hop.type === 'vpn')
  if (shared || (fail_policy === 'fail-degraded' && carriers.length > 0)) return through(way, left)
  // An uplink that was chosen stays if only tunnels are down.
  if (situation === 'down' && left.length === hops.length) return through(way, hops)
  return without(fail_policy)
}

function without(fail_policy: FailPolicy): Prediction {
  return { state: fail_policy === 'fail-open' ? 'direct' : 'blocked', via: [] }
}

function through(way: Resolved, hops: readonly Hop[]): Prediction {
  const taken = hopUse(way) === 'failover' ? hops.slice(0, 1) : hops
  return {
    state: taken.every((hop) => hop.type === 'interface') ? 'direct' : 'ok',
    via: taken.map((hop) => hop.target),
  }
}
