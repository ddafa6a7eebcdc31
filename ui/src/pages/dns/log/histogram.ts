// The loaded entries in steps of time.

import type { Schemas } from '@/api/client'

type Entry = Schemas['Entry']

export interface Step {
  start: number
  queries: number
  blocked: number
}

export interface Histogram {
  from: number
  to: number
  /** Length of a step in milliseconds. */
  step: number
  steps: Step[]
  most: number
}

const LENGTHS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21_600, 43_200, 86_400]

/** Length of a step, so that a span has at most so many. */
export function stepOf(span: number, most: number): number {
  for (const seconds of LENGTHS) if (span / (seconds * 1000) <= most) return seconds * 1000
  return Math.ceil(span / most / 86_400_000) * 86_400_000
}

/** Entries are newest first. The last step holds the newest, or `to`. */
export function histogramOf(entries: readonly Entry[], to: number | undefined, most = 120): Histogram | null {
  const newest = entries[0]
  const oldest = entries[entries.length - 1]
  if (!newest || !oldest) return null
  const first = Date.parse(oldest.time)
  const last = Math.max(to ?? 0, Date.parse(newest.time))
  const step = stepOf(Math.max(1000, last - first), most)
  const from = Math.floor(first / step) * step
  const count = Math.floor((last - from) / step) + 1
  const steps: Step[] = Array.from({ length: count }, (_, index) => ({
    start: from + index * step,
    queries: 0,
    blocked: 0,
  }))
  let highest = 0
  for (const entry of entries) {
    const at = steps[Math.floor((Date.parse(entry.time) - from) / step)]
    if (!at) continue
    at.queries += 1
    if (entry.status === 'blocked') at.blocked += 1
    highest = Math.max(highest, at.queries)
  }
  return { from, to: from + count * step, step, steps, most: highest }
}

/** The whole steps that a drag from one place to another covers; places are shares of the width. */
export function brushed(histogram: Histogram, one: number, other: number): { from: number; to: number } {
  const index = (share: number) =>
    Math.min(histogram.steps.length - 1, Math.max(0, Math.floor(share * histogram.steps.length)))
  const first = index(Math.min(one, other))
  const last = index(Math.max(one, other))
  return { from: histogram.from + first * histogram.step, to: histogram.from + (last + 1) * histogram.step }
}
