// Rates from counters that only grow: read by read, since this tab opened.

export interface Reading {
  /** Milliseconds since 1970. */
  at: number
  queries: number
  blocked: number
  hits: number
}

export interface Rates {
  /** Seconds since 1970. */
  times: number[]
  queries: (number | null)[]
  blocked: (number | null)[]
  cached: (number | null)[]
}

/** Readings that are kept. */
const MOST = 720
/** A longer pause between two readings leaves a gap, in milliseconds. */
const GAP = 60_000

/** Adds a reading. One at the time of the last is the same answer. */
export function add(readings: readonly Reading[], next: Reading): readonly Reading[] {
  const last = readings[readings.length - 1]
  if (last && next.at <= last.at) return readings
  return [...readings, next].slice(-MOST)
}

/** Rates between the readings. Where a counter went back (midnight, a restart) or none was read, there is none. */
export function ratesOf(readings: readonly Reading[]): Rates {
  const rates: Rates = { times: [], queries: [], blocked: [], cached: [] }
  readings.forEach((reading, index) => {
    const before = readings[index - 1]
    if (!before) return
    const seconds = (reading.at - before.at) / 1000
    const rate = (now: number, then: number) =>
      now < then || seconds * 1000 > GAP ? null : (now - then) / seconds
    rates.times.push(reading.at / 1000)
    rates.queries.push(rate(reading.queries, before.queries))
    rates.blocked.push(rate(reading.blocked, before.blocked))
    rates.cached.push(rate(reading.hits, before.hits))
  })
  return rates
}
