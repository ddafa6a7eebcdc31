// What a cell of the leak matrix says: `via wg-a`, `blocked`, `DIRECT`.

import type { Text } from '@/text'
import { hopColumns, stateOf, type Cell, type LeakMatrix, type LeakRow } from './model'

export function cellWords(cell: Cell, row: Pick<LeakRow, 'fail_policy' | 'risk'>, text: Text): string {
  const state = stateOf(cell, row)
  const via = cell.via === 'default' ? null : cell.via
  if (state === 'leak') return text.policies.cellLeak(via ?? '')
  if (state === 'blocked') return text.policies.cellBlocked
  if (state === 'ok') return via ? text.policies.via(via) : text.policies.outcomes[cell.outcome]
  if (cell.leak) return text.policies.cellDIRECT
  return via ? text.policies.chosen(via) : text.policies.cellDirect
}

/** Heading of a column: `All down`, `wg-a down`. */
export function stateLabel(matrix: LeakMatrix, state: string, text: Text): string {
  const hop = hopColumns(matrix).find((column) => column.state === state)
  if (hop) return text.policies.hopIsDown(hop.target)
  return text.policies.states[state] ?? state
}
