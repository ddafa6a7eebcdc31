// Rates from the counters of successive reads, since this tab was opened.

import { useEffect, useSyncExternalStore } from 'react'

/** Counters of a tunnel at a time. */
export interface Sample {
  /** Time of the read in milliseconds. */
  at: number
  received: number
  sent: number
}

/** Rates in bytes per second; `null` where the counters started again or reads are missing. */
export interface Rates {
  /** Times in seconds since 1970. */
  times: number[]
  received: (number | null)[]
  sent: (number | null)[]
}

/** Samples that are kept of each tunnel: an hour at three seconds. */
const MOST = 1200
/** Pause between two reads from which no rate is computed, in milliseconds. */
const LONGEST_PAUSE = 60_000

/** Adds a sample unless it is of the same read as the last one. */
export function withSample(samples: readonly Sample[], sample: Sample): readonly Sample[] {
  const last = samples[samples.length - 1]
  if (last && sample.at - last.at < 500) return samples
  return [...samples.slice(1 - MOST), sample]
}

/** Computes the rate of each pause between two samples. */
export function ratesOf(samples: readonly Sample[]): Rates {
  const rates: Rates = { times: [], received: [], sent: [] }
  for (let index = 1; index < samples.length; index += 1) {
    const before = samples[index - 1]
    const after = samples[index]
    if (!before || !after) continue
    const seconds = (after.at - before.at) / 1000
    const counts =
      after.at - before.at <= LONGEST_PAUSE && after.received >= before.received && after.sent >= before.sent
    rates.times.push(after.at / 1000)
    rates.received.push(counts ? (after.received - before.received) / seconds : null)
    rates.sent.push(counts ? (after.sent - before.sent) / seconds : null)
  }
  return rates
}

/** The newest rate; `null` if there is none. */
export function latest(values: readonly (number | null)[]): number | null {
  return values[values.length - 1] ?? null
}

let samples: Readonly<Record<string, readonly Sample[]>> = {}
const listeners = new Set<() => void>()

function subscribe(listener: () => void) {
  listeners.add(listener)
  return () => void listeners.delete(listener)
}

const NONE: readonly Sample[] = []

interface Counted {
  id: string
  rx_bytes?: number
  tx_bytes?: number
}

/** Records the counters of a read. */
export function useRecorded(read: readonly Counted[] | undefined, at: number) {
  useEffect(() => {
    if (!read || at === 0) return
    const next = { ...samples }
    for (const { id, rx_bytes, tx_bytes } of read)
      if (rx_bytes !== undefined && tx_bytes !== undefined)
        next[id] = withSample(next[id] ?? NONE, { at, received: rx_bytes, sent: tx_bytes })
    samples = next
    for (const listener of listeners) listener()
  }, [read, at])
}

/** The samples of a tunnel since this tab was opened. */
export function useSamples(id: string): readonly Sample[] {
  return useSyncExternalStore(subscribe, () => samples[id] ?? NONE)
}
