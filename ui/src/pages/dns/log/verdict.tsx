// What became of a query, in a word.

import { Icon } from '@/components/icons'
import { StateWord, type State } from '@/components/state'
import { useText } from '@/text'
import { causeOf } from './entry-words'
import type { Entry } from './filters'

/** Ordinary verdicts are plain ink; only what was stopped or failed has a colour. */
export function Verdict({ entry }: { entry: Entry }) {
  const text = useText()
  const { statuses, leftBy } = text.dns.log
  const left = entry.left_by
  const blocked = left?.kind === 'blocked'
  const direct = left?.kind === 'direct' && entry.status === 'forwarded'
  const word = blocked
    ? leftBy.blocked(causeOf(entry, leftBy.down))
    : direct
      ? leftBy.direct
      : (statuses[entry.status] ?? entry.status)
  const state = blocked ? 'blocked' : direct ? 'direct' : STATES[entry.status]
  if (state) return <StateWord state={state}>{word}</StateWord>
  return (
    <span className="st st--plain">
      <Icon name="check" />
      {word}
    </span>
  )
}

const STATES: Partial<Record<string, State>> = { blocked: 'blocked', refused: 'blocked', error: 'down' }
