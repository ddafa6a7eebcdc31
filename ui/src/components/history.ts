// What counters did since this tab was opened: rates from the differences of successive reads.

import { useEffect, useSyncExternalStore } from 'react'

/** Rates at one time, per second. */
export interface Point {
  /** Milliseconds since 1970. */
  time: number
  rates: readonly number[]
}

interface Counted {
  time: number
  counters: readonly number[]
}

/** Points that are kept: ten minutes at one each 3 seconds. */
const MOST = 200
/** Reads that are closer to each other, in milliseconds, make no rate. */
const CLOSEST = 900

/** Rates between two reads. Null if a counter went back: it began again. */
export function rateBetween(before: Counted, after: Counted): Point | null {
  const seconds = (after.time - before.time) / 1000
  if (seconds <= 0) return null
  const rates = after.counters.map((counter, index) => (counter - (before.counters[index] ?? 0)) / seconds)
  return rates.some((rate) => rate < 0) ? null : { time: after.time, rates }
}

const NONE: readonly Point[] = []

export class History {
  private last = new Map<string, Counted>()
  private points = new Map<string, readonly Point[]>()
  private listeners = new Set<() => void>()

  /** Takes the counters of one read, by name. */
  add(time: number, counters: Iterable<readonly [name: string, counters: readonly number[]]>) {
    let changed = false
    for (const [name, values] of counters) {
      const before = this.last.get(name)
      const after = { time, counters: values }
      if (before && time - before.time < CLOSEST) continue
      this.last.set(name, after)
      const point = before ? rateBetween(before, after) : null
      if (!point) continue
      this.points.set(name, [...(this.points.get(name) ?? NONE), point].slice(-MOST))
      changed = true
    }
    if (changed) for (const listener of this.listeners) listener()
  }

  of = (name: string): readonly Point[] => this.points.get(name) ?? NONE

  subscribe = (listener: () => void) => {
    this.listeners.add(listener)
    return () => void this.listeners.delete(listener)
  }
}

const history = new History()

/** Takes the counters of each new read. `readAt` is the time of the read. */
export function useCounters(readAt: number, counters: () => Iterable<readonly [string, readonly number[]]>) {
  useEffect(() => {
    if (readAt > 0) history.add(readAt, counters())
    // The counters belong to the read.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [readAt])
}

/** The rates of a counter since this tab was opened, oldest first. */
export function useHistory(name: string): readonly Point[] {
  return useSyncExternalStore(history.subscribe, () => history.of(name))
}

/** Newest rates of a counter. Null until two reads have been made. */
export function latest(points: readonly Point[], now: number, fresh = 30_000): readonly number[] | null {
  const last = points[points.length - 1]
  return last && now - last.time < fresh ? last.rates : null
}

let version = 0
history.subscribe(() => {
  version += 1
})

/** A function that returns the newest rates of any counter. */
export function useRates(): (name: string) => readonly number[] | null {
  useSyncExternalStore(history.subscribe, () => version)
  return (name) => {
    const points = history.of(name)
    return points[points.length - 1]?.rates ?? null
  }
}
