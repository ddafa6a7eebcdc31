// What this tab saw of the uplinks: their states and latencies at each read.

import { useEffect, useSyncExternalStore } from 'react'
import type { Schemas } from '@/api/client'
import type { Observation } from './timeline'

/** Latency of an uplink at a read; `null` without an answer. */
export interface Latency {
  /** Time in seconds since 1970. */
  at: number
  ms: number | null
}

export interface Seen {
  states: readonly Observation[]
  latencies: Readonly<Record<string, readonly Latency[]>>
}

/** Reads that are kept: an hour at five seconds. */
const MOST = 720

let seen: Seen = { states: [], latencies: {} }
const listeners = new Set<() => void>()

/** Adds a read. A state that did not change takes no room. */
export function withRead(before: Seen, health: readonly Schemas['UplinkHealth'][], at: number): Seen {
  const states = Object.fromEntries(health.map((each) => [each.uplink || each.interface, each.state]))
  const last = before.states.at(-1)
  const same = last !== undefined && JSON.stringify(last.states) === JSON.stringify(states)
  const latencies = { ...before.latencies }
  for (const each of health) {
    const name = each.uplink || each.interface
    const own = latencies[name] ?? []
    const newest = own.at(-1)
    if (newest && at / 1000 - newest.at < 1) continue
    latencies[name] = [...own.slice(1 - MOST), { at: at / 1000, ms: each.reachable ? each.latency_ms : null }]
  }
  return { states: same ? before.states : [...before.states.slice(1 - MOST), { at, states }], latencies }
}

/** Records a read and returns all of this tab. */
export function useSeen(health: readonly Schemas['UplinkHealth'][] | undefined, at: number): Seen {
  useEffect(() => {
    if (!health || at === 0) return
    seen = withRead(seen, health, at)
    for (const listener of listeners) listener()
  }, [health, at])
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    () => seen,
  )
}
