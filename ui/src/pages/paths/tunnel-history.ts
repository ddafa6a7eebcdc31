// What the daemon recorded of tunnels: traffic by minute, and states.

import type { Schemas } from '@/api/client'
import type { Band, Paint } from '@/components/bands'
import type { Sample } from '@/components/timescale'

export type Recorded = Schemas['RecordedTunnel']

const MINUTE = 60_000
const HOUR = 60 * MINUTE

/** Lengths of the history that may be chosen, in milliseconds. */
export const RANGES: Record<string, number> = { hour: HOUR, day: 24 * HOUR }

const PAINTS: Record<string, Paint> = {
  up: 'active',
  degraded: 'degraded',
  connecting: 'offline',
  disconnecting: 'offline',
  down: 'offline',
  error: 'offline',
}

/** The states of a tunnel as bands. The last one goes on until now. */
export function bandsOf(
  recorded: Recorded,
  from: number,
  now: number,
  wordOf: (status: string) => string,
): Band[] {
  const bands: Band[] = []
  for (const { from: begin, to, status } of recorded.spans) {
    const start = Math.max(from, Date.parse(begin))
    const end = Math.min(now, Date.parse(to))
    const last = bands.at(-1)
    const word = wordOf(status)
    if (last?.word === word && start - last.to < 1000) last.to = end
    else if (end > start) bands.push({ from: start, to: end, paint: PAINTS[status] ?? 'none', word })
  }
  const last = bands.at(-1)
  // The record is read once a minute.
  if (last && now - last.to < 2 * MINUTE) last.to = now
  return bands
}

/** Rates of each whole minute in bytes per second. The minute that is not over is left out. */
export function ratesOf(recorded: Recorded, now: number, which: 'rx_bytes' | 'tx_bytes'): Sample[] {
  return recorded.minutes
    .map((minute) => ({ at: Date.parse(minute.at), value: minute[which] / 60 }))
    .filter((sample) => sample.at + MINUTE <= now)
}

/** Latencies of each minute; empty if none was measured. */
export function latenciesOf(recorded: Recorded): Sample[] {
  if (recorded.minutes.every((minute) => minute.latency_ms === null)) return []
  return recorded.minutes.map((minute) => ({ at: Date.parse(minute.at), value: minute.latency_ms }))
}

/** Both rates of the last minutes for a small line, each minute one value; `null` where none is recorded. */
export function recentRates(recorded: Recorded, now: number, most: number): (number | null)[] {
  const [received, sent] = [ratesOf(recorded, now, 'rx_bytes'), ratesOf(recorded, now, 'tx_bytes')]
  const sums = new Map(received.map(({ at, value }, index) => [at, (value ?? 0) + (sent[index]?.value ?? 0)]))
  const last = Math.floor(now / MINUTE) * MINUTE - MINUTE
  return Array.from({ length: most }, (_, index) => sums.get(last - (most - 1 - index) * MINUTE) ?? null)
}

/** Begin of the drawing: the range, but not long before the record begins. */
export function beginOf(recorded: readonly Recorded[], range: number, now: number): number {
  const starts = recorded.flatMap((each) => (each.spans[0] ? [Date.parse(each.spans[0].from)] : []))
  const first = starts.length > 0 ? Math.min(...starts) : now
  return Math.min(Math.max(now - range, first), now - 10 * MINUTE)
}

/** The highest value, to be said beside its line. */
export function peakOf(samples: readonly Sample[]): { at: number; value: number } | null {
  let peak: { at: number; value: number } | null = null
  for (const { at, value } of samples) if (value && value > (peak?.value ?? 0)) peak = { at, value }
  return peak
}
