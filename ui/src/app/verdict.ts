// The verdict of the daemon. It is UNKNOWN while no fresh answer is there, whatever the last one said.

import { useGet } from '@/api/query'
import type { Schemas } from '@/api/client'
import type { State } from '@/components/state'
import { useNow } from '@/components/time'

type Word = Schemas['GatewayVerdict']['word']

export interface Verdict {
  word: Word
  state: State
  /** The last answer, also if it is old. */
  last: Schemas['GatewayVerdict'] | undefined
  /** Time of the last check, as the daemon said it. */
  checkedAt: string | null
  /** The last answer is young enough to say something. */
  fresh: boolean
  /** The daemon answers. */
  reachable: boolean
}

/** Age from which an answer says nothing any more, in milliseconds. */
const WORTHLESS = 30_000

const STATES: Record<Word, State> = { OK: 'ok', BLOCKED: 'blocked', LEAK: 'leak', UNKNOWN: 'unknown' }

export function useVerdict(): Verdict {
  const query = useGet('/status', {}, { every: 3000 })
  const now = useNow()
  const last = query.data?.data.verdict
  // An unchanged answer is not sent again, so the time of the read counts as well as that of the check.
  const fresh = query.error === null && now - query.dataUpdatedAt < WORTHLESS
  const word: Word = last && fresh ? last.word : 'UNKNOWN'
  return {
    word,
    state: STATES[word],
    last,
    checkedAt: last?.checked_at ?? null,
    fresh,
    reachable: query.error === null,
  }
}

/** The sentence without its word and its age, which are drawn apart. */
export function bareSentence(verdict: Pick<Schemas['GatewayVerdict'], 'word' | 'sentence'>): string {
  const rest = verdict.sentence.startsWith(verdict.word)
    ? verdict.sentence.slice(verdict.word.length)
    : ` ${verdict.sentence}`
  return rest.replace(/\s*Checked [^.]* ago\.\s*$/, '')
}
