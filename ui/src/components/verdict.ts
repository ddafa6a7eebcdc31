// The verdict of the daemon. It is UNKNOWN while no fresh answer is there, whatever the last one said.

import { useGet } from '@/api/query'
import type { Schemas } from '@/api/client'
import type { State } from '@/components/state'
import { useNow } from '@/components/time'

type Word = Schemas['GatewayVerdict']['word']

export interface Verdict {
  word: Word
  /** Amber for `OK` while hosts leave directly that no policy is for. */
  state: State
  /** How many hosts are covered, if not all of them are; null also while the verdict is old. */
  share: Schemas['Share'] | null
  /** The last answer, also if it is old. */
  last: Schemas['GatewayVerdict'] | undefined
  /** Time of the last check, as the daemon said it. */
  checkedAt: string | null
  /** The last answer is young enough to say something. */
  fresh: boolean
  /** The daemon has left a read unanswered for longer than it takes to answer one. */
  late: boolean
  /** The daemon answers. */
  reachable: boolean
}

/** Age from which an answer says nothing any more, in milliseconds. */
const WORTHLESS = 10_000

/** Age from which the next answer is overdue, in milliseconds. */
const OVERDUE = 5_000

const STATES: Record<Word, State> = { OK: 'ok', BLOCKED: 'blocked', LEAK: 'leak', UNKNOWN: 'unknown' }

/** The state in which a verdict is drawn. */
export function stateOf(word: Word, share: Schemas['Share'] | null): State {
  return word === 'OK' && share !== null ? 'direct' : STATES[word]
}

/** Reports whether an answer of this time says something now. */
export function isFresh(at: number, now: number): boolean {
  return now - at < WORTHLESS
}

export function useVerdict(): Verdict {
  const query = useGet('/status', {}, { every: 3000 })
  const now = useNow()
  const last = query.data?.data.verdict
  // An unchanged answer is not sent again, so the time of the read counts as well as that of the check.
  const fresh = query.error === null && isFresh(query.dataUpdatedAt, now)
  const word: Word = last && fresh ? last.word : 'UNKNOWN'
  const share = word === last?.word ? last.share : null
  return {
    word,
    state: stateOf(word, share),
    share,
    last,
    checkedAt: last?.checked_at ?? null,
    fresh,
    late: now - query.dataUpdatedAt >= OVERDUE,
    reachable: query.error === null,
  }
}

/** The sentence without durations and counts of packets, which go on while nothing else changes. */
export function steadyPart(sentence: string): string {
  return sentence.replace(
    /\b\d[\d\s]*(?:packets?|Pakete?|ms|s|m|h|d|min|minutes?|seconds?|hours?|days?)\b/g,
    '',
  )
}

/** The sentence without its word and its age, which are drawn apart. */
export function bareSentence(verdict: Pick<Schemas['GatewayVerdict'], 'word' | 'sentence'>): string {
  const rest = verdict.sentence.startsWith(verdict.word)
    ? verdict.sentence.slice(verdict.word.length)
    : ` ${verdict.sentence}`
  return rest.replace(/\s*Checked [^.]* ago\.\s*$/, '')
}
