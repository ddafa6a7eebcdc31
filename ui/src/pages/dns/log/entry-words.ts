// What the query log says of one entry: what decided, who answered, and when.

import { formatNumber, formatTime } from '@/text/format'
import type { Entry } from './filters'

/** Why a query may not leave: `wg-a is down`, or the reason of the resolver. */
export function causeOf(
  { left_by: left, ede }: Pick<Entry, 'left_by' | 'ede'>,
  words: (hops: string, several: boolean) => string,
): string {
  const down = left?.down ?? []
  return down.length > 0 ? words(down.join(', '), down.length > 1) : (ede?.detail ?? '')
}

/** What decided, in words: `list OISD big`, `rule ads`, `no rule`. */
export function becauseOf(
  entry: Entry,
  log: { reasonOf: (reason: string, name: string) => string; noRule: string },
): string {
  if (entry.ede && entry.reason === null) return entry.ede.detail ?? entry.ede.text
  if (entry.reason === null) return log.noRule
  const name = entry.list?.name ?? entry.rule ?? ''
  return log.reasonOf(entry.reason, name)
}

export function tookOf(milliseconds: number): string {
  if (milliseconds < 1) return '< 1 ms'
  return `${formatNumber(milliseconds, milliseconds < 10 ? 1 : 0)} ms`
}

/** The time of day with milliseconds, the date before it if it is another day. */
export function clockOf(time: string): string {
  const date = new Date(time)
  const milliseconds = String(date.getMilliseconds()).padStart(3, '0')
  return `${formatTime(time, 'seconds')}.${milliseconds}`
}

/** The upstream that answered, and the egress: `9.9.9.9 via wg-a`. */
export function answeredBy({ upstream, egress }: Entry, via: (egress: string) => string): string | undefined {
  return upstream === null ? undefined : `${upstream}${egress === null ? '' : ` ${via(egress)}`}`
}
