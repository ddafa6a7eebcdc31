// Bytes over time, one series for each of those that used most.

import type { Schemas } from '@/api/client'
import type { QueryOf } from '@/api/query'

/** Property by which flows are added up. */
export type FlowGroup = NonNullable<QueryOf<'/flows/top'>['by']>
/** Property of which totals are kept. */
export type UsageGroup = NonNullable<QueryOf<'/flows/usage'>['by']>

type Row = Schemas['UsageEntry']

export interface Used {
  /** Id or name; null for flows without one, undefined for all the others together. */
  key: string | null | undefined
  name: string | null
  bytes: number
  values: number[]
}

/** Series of a chart; what is beyond is added up. */
const MOST = 4

/** The begins of all steps from one time to another, in seconds since 1970. */
export function stepsOf(from: number, to: number, seconds: number): number[] {
  const first = Math.floor(from / seconds) * seconds
  return Array.from(
    { length: Math.max(0, Math.floor((to - first) / seconds) + 1) },
    (_, index) => first + index * seconds,
  )
}

/** The largest first. A step without a row has no bytes. */
export function seriesOf(rows: readonly Row[], times: readonly number[]): Used[] {
  const indexes = new Map(times.map((time, index) => [time, index]))
  const all = new Map<string | null, Used>()
  for (const { at, id, name, sent_bytes, received_bytes } of rows) {
    const index = indexes.get(Date.parse(at) / 1000)
    if (index === undefined) continue
    const key = id ?? name
    const used = all.get(key) ?? { key, name, bytes: 0, values: times.map(() => 0) }
    all.set(key, used)
    used.bytes += sent_bytes + received_bytes
    used.values[index] = (used.values[index] ?? 0) + sent_bytes + received_bytes
  }
  const sorted = [...all.values()].sort((one, other) => other.bytes - one.bytes)
  const rest = sorted.slice(MOST)
  if (rest.length < 2) return sorted
  const sum = (of: (used: Used) => number) => rest.reduce((total, used) => total + of(used), 0)
  const values = times.map((_, index) => sum((used) => used.values[index] ?? 0))
  return [...sorted.slice(0, MOST), { key: undefined, name: null, bytes: sum((used) => used.bytes), values }]
}
