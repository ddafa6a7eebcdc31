// What happens when all tunnels drop, counted from the leak matrix. Its rows are not only policies: exceptions, profiles of
// devices and bridges make rows too.

import type { LeakMatrix } from './model'
import { originOf, type Origins } from './origin'

export interface Counts {
  blocked: number
  direct: number
  other: number
}

/** Types whose traffic is direct to some destinations only. */
const SOME = ['service-allowlist', 'captive-portal']

export function dropOf(matrix: LeakMatrix, known: Origins) {
  const of = (origin: string) => matrix.rows.filter((row) => originOf(row.policy_id, known) === origin)
  const isPartial = (id: string) => SOME.includes(known.exceptions.find((each) => each.id === id)?.type ?? '')
  const exceptions = of('exception')
  const some = exceptions.filter((row) => isPartial(row.policy_id))
  const whole = count(exceptions.filter((row) => !some.includes(row)))
  const partial = count(some)
  return {
    policies: { total: of('policy').length, ...count(of('policy')) },
    exceptions: {
      direct: whole.direct,
      some: partial.direct,
      blocked: whole.blocked + partial.blocked,
      other: whole.other + partial.other,
    },
    profiles: { total: of('profile').length, ...count(of('profile')) },
  }
}

function count(rows: LeakMatrix['rows']): Counts {
  const outcomes = rows.map((row) => row.cells.down.outcome)
  const blocked = outcomes.filter((outcome) => outcome === 'blocked').length
  const direct = outcomes.filter((outcome) => outcome === 'direct').length
  return { blocked, direct, other: outcomes.length - blocked - direct }
}
