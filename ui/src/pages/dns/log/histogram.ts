// Queries over time: all of them, minute by minute as the daemon counted them, and of a narrowed log those that are loaded.

import type { Schemas } from '@/api/client'
import type { Entry } from './filters'

type Minute = Schemas['DnsMinute']

export interface Counts {
  queries: number
  blocked: number
}

export interface Step {
  start: number
  /** All queries. Null where the daemon has no count. */
  all: Counts | null
  /** The loaded ones. */
  loaded: Counts
}

export interface Histogram {
  from: number
  to: number
  /** Length of a step in milliseconds. */
  step: number
  steps: Step[]
  most: number
}

export const MINUTE = 60_000
const LENGTHS = [1, 2, 5, 10, 15, 30, 60, 120, 360, 720, 1440]
/** The chart shows at least these minutes. */
const LEAST = 120
const BARS = 120

/** Length of a step, so that a span has at most so many. Whole minutes: the daemon counts by these. */
export function stepOf(span: number, most: number): number {
  const days = 1440 * MINUTE
  const length = LENGTHS.find((minutes) => span / (minutes * MINUTE) <= most)
  return length === undefined ? Math.ceil(span / most / days) * days : length * MINUTE
}

/** The time that the chart shows: the range with what surrounds it, two hours at least and not after `now`. */
export function windowOf(from: number | undefined, to: number | undefined, now: number) {
  const end = Math.min(to ?? now, now)
  const span = Math.max(LEAST * MINUTE, (end - (from ?? end)) * 1.5)
  // An end in the past has some time after it as well.
  const last = to === undefined ? now : Math.min(now, end + span / 4)
  return { from: last - span, to: last }
}

function add(into: Counts, queries: number, blocked: number) {
  into.queries += queries
  into.blocked += blocked
}

export function histogramOf(
  minutes: readonly Minute[],
  entries: readonly Entry[],
  window: { from: number; to: number },
): Histogram {
  const step = stepOf(window.to - window.from, BARS)
  const from = Math.floor(window.from / step) * step
  const count = Math.max(1, Math.ceil((window.to - from) / step))
  const steps: Step[] = Array.from({ length: count }, (_, index) => ({
    start: from + index * step,
    all: null,
    loaded: { queries: 0, blocked: 0 },
  }))
  const at = (time: string) => steps[Math.floor((Date.parse(time) - from) / step)]
  for (const minute of minutes) {
    const each = at(minute.at)
    if (!each) continue
    each.all ??= { queries: 0, blocked: 0 }
    add(each.all, minute.queries, minute.blocked)
  }
  for (const entry of entries) {
    const each = at(entry.time)
    if (each) add(each.loaded, 1, entry.status === 'blocked' ? 1 : 0)
  }
  const most = Math.max(0, ...steps.map((each) => Math.max(each.all?.queries ?? 0, each.loaded.queries)))
  return { from, to: from + count * step, step, steps, most }
}

/** Runs of steps without a count, as indices: first, and the one after the last. */
export function gapsOf(steps: readonly Step[]): [first: number, end: number][] {
  const gaps: [number, number][] = []
  steps.forEach(({ all, loaded }, index) => {
    if (all !== null || loaded.queries > 0) return
    const last = gaps[gaps.length - 1]
    if (last?.[1] === index) last[1] = index + 1
    else gaps.push([index, index + 1])
  })
  return gaps
}

/** The whole steps that a drag from one place to another covers; places are shares of the width. */
export function brushed(histogram: Histogram, one: number, other: number): { from: number; to: number } {
  const index = (share: number) =>
    Math.min(histogram.steps.length - 1, Math.max(0, Math.floor(share * histogram.steps.length)))
  const first = index(Math.min(one, other))
  const last = index(Math.max(one, other))
  return { from: histogram.from + first * histogram.step, to: histogram.from + (last + 1) * histogram.step }
}
