// Charts from what the daemon recorded by minute.

/** A minute that the daemon recorded. */
interface Minute {
  /** Begin of the minute. */
  at: string
}

const MINUTE = 60_000

/** One value for each of the last whole minutes, oldest first. Minutes that were not recorded are null. */
export function lastMinutes<M extends Minute>(
  minutes: readonly M[],
  count: number,
  now: number,
  value: (minute: M) => number,
): (number | null)[] {
  // The present minute is not over, so it would look like a drop.
  const end = Math.floor(now / MINUTE) * MINUTE
  const values: (number | null)[] = Array.from({ length: count }, () => null)
  for (const minute of minutes) {
    const index = count - Math.round((end - Date.parse(minute.at)) / MINUTE)
    if (index >= 0 && index < count) values[index] = value(minute)
  }
  return values
}

export interface Bucket {
  /** Begin in seconds since 1970. */
  time: number
  /** Mean per minute of each value; null without a recorded minute. */
  means: (number | null)[]
}

/** Means over several minutes each, oldest first, from the first recorded minute. The present minute is left out. */
export function buckets<M extends Minute>(
  minutes: readonly M[],
  size: number,
  now: number,
  values: (minute: M) => readonly number[],
): Bucket[] {
  const end = Math.floor(now / MINUTE) * MINUTE
  const whole = minutes.filter((minute) => Date.parse(minute.at) < end)
  const width = whole[0] ? values(whole[0]).length : 0
  const sums = new Map<number, { count: number; sums: number[] }>()
  for (const minute of whole) {
    const bucket = Math.floor(Date.parse(minute.at) / (size * MINUTE))
    const sum = sums.get(bucket) ?? { count: 0, sums: Array.from({ length: width }, () => 0) }
    sum.count += 1
    values(minute).forEach((value, index) => {
      sum.sums[index] = (sum.sums[index] ?? 0) + value
    })
    sums.set(bucket, sum)
  }
  const indexes = [...sums.keys()]
  if (indexes.length === 0) return []
  const [first, last] = [Math.min(...indexes), Math.max(...indexes)]
  return Array.from({ length: last - first + 1 }, (_, offset) => {
    const sum = sums.get(first + offset)
    return {
      time: (first + offset) * size * 60,
      means: Array.from({ length: width }, (_, index) => (sum ? (sum.sums[index] ?? 0) / sum.count : null)),
    }
  })
}

export interface Band {
  x: number
  width: number
  kind: 'ok' | 'sb' | 'dg' | 'off'
}

export interface Span {
  from: string
  to: string
  state: string
  active: boolean
}

interface Present {
  state: string
  active: boolean
  /** Time since which the state is the same. */
  since: string | null
  /** Time of the last probe. */
  at: string | null
}

/** The recorded states and, after them, the present one, which is read more often. */
export function untilNow(recorded: readonly Span[], { state, active, since, at }: Present): Span[] {
  const last = recorded.at(-1)
  if (!last || at === null || Date.parse(at) <= Date.parse(last.from)) return [...recorded]
  const changed = last.state !== state && since !== null && Date.parse(since) < Date.parse(last.to)
  const from = changed ? since : last.to
  const before = recorded
    .filter((span) => Date.parse(span.from) < Date.parse(from))
    .map((span) => (Date.parse(span.to) > Date.parse(from) ? { ...span, to: from } : span))
  return Date.parse(at) > Date.parse(from) ? [...before, { from, to: at, state, active }] : before
}

/** The states of an uplink as bands of a strip. A span that is too short to see is drawn 2 wide. */
export function bandsOf(spans: readonly Span[], from: number, to: number, width: number): Band[] {
  return spans.flatMap((span) => {
    const begin = Math.max(from, Date.parse(span.from))
    const end = Math.min(to, Date.parse(span.to))
    if (!(end > begin) || to <= from) return []
    const x = (width * (begin - from)) / (to - from)
    const wide = Math.max(2, (width * (end - begin)) / (to - from) - 1)
    return [
      {
        x: Math.min(x, width - 2),
        width: Math.min(wide, width - Math.min(x, width - 2)),
        kind: kindOf(span),
      },
    ]
  })
}

function kindOf({ state, active }: Span): Band['kind'] {
  // One that no probe has reached yet is not known to work, and not degraded either.
  if (state === 'offline' || state === 'disabled' || state === 'connecting') return 'off'
  if (state !== 'online') return 'dg'
  return active ? 'ok' : 'sb'
}
