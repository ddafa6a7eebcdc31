// The history of the resolver as lines of a chart.

import type { Schemas } from '@/api/client'

type Minute = Schemas['DnsMinute']

export interface Lines {
  /** Seconds since 1970. */
  times: number[]
  queries: (number | null)[]
  blocked: (number | null)[]
  cached: (number | null)[]
}

const MINUTE = 60_000

/**
 * Queries a minute, each point the mean of `step` minutes. The minute that is not over is left out; where the daemon has no
 * count there is none.
 */
export function linesOf(history: readonly Minute[], now: number, step = 1): Lines {
  const lines: Lines = { times: [], queries: [], blocked: [], cached: [] }
  const over = history.filter((minute) => Date.parse(minute.at) + MINUTE <= now)
  const first = over[0]
  const last = over[over.length - 1]
  if (!first || !last) return lines
  const length = step * MINUTE
  const index = (minute: Minute) => Math.floor(Date.parse(minute.at) / length)
  const groups = new Map<number, Minute[]>()
  for (const minute of over) groups.set(index(minute), [...(groups.get(index(minute)) ?? []), minute])
  for (let at = index(first); at <= index(last); at += 1) {
    const group = groups.get(at)
    const mean = (value: (minute: Minute) => number) =>
      group ? group.reduce((sum, minute) => sum + value(minute), 0) / group.length : null
    lines.times.push((at * length) / 1000)
    lines.queries.push(mean((minute) => minute.queries))
    lines.blocked.push(mean((minute) => minute.blocked))
    lines.cached.push(mean((minute) => minute.cached))
  }
  return lines
}
