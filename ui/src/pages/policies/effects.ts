// What an apply would change for each policy, state by state.

import type { Schemas } from '@/api/client'
import type { State } from '@/components/state'
import type { Text } from '@/text'
import { cellWords, stateLabel } from './cell-words'
import {
  cellOf,
  hopColumns,
  isIdle,
  readRule,
  sameCell,
  stateOf,
  stateOfAction,
  viaOfAction,
  type LeakMatrix,
  type LeakRow,
  type Pending,
} from './model'
import { predict, type Prediction, type Resolved } from './predict'

export interface Side {
  state: State
  words: string
}

export interface Effect {
  /** The state of the tunnels: `All down`. */
  when: string
  before: Side
  after: Side
}

interface Given {
  running: LeakMatrix | undefined
  /** The matrix after an apply, where the daemon computes it. */
  later: LeakMatrix | undefined
  dryRun: Schemas['PlanResult'] | undefined
  /** What the daemon does with traffic that no policy matches. */
  unmatched: string
  resolved: (pending: Pending) => Resolved | undefined
  text: Text
}

/** The differences that an apply makes for one policy. */
export function effectsOf(pending: Pending, given: Given): Effect[] {
  const { running, later, text } = given
  if (isIdle(pending)) return []
  const before = running?.rows.find((row) => row.policy_id === pending.id)
  if (pending.kind === 'removed' || pending.kind === 'off') return [gone(pending, before, given)]
  if (later) {
    const after = later.rows.find((row) => row.policy_id === pending.id)
    if (after) return between(before, after, later, text)
  }
  return estimated(pending, before, given)
}

function gone(pending: Pending, before: LeakRow | undefined, { text, unmatched }: Given): Effect {
  return {
    when: text.policies.now,
    before: before ? sideOf(before, 'up', text) : { state: 'idle', words: pending.name },
    after: { state: unmatched === 'direct' ? 'direct' : 'unknown', words: text.policies.nextRule },
  }
}

function between(before: LeakRow | undefined, after: LeakRow, matrix: LeakMatrix, text: Text): Effect[] {
  const hops = hopColumns(matrix).map((column) => column.state)
  const states = (matrix.states as readonly string[]).filter(
    (state) => hops.length === 0 || state !== 'degraded',
  )
  return states
    .filter((state) => !before || !sameCell(cellOf(before, state), cellOf(after, state)))
    .map((state) => ({
      when: stateLabel(matrix, state, text),
      before: before ? sideOf(before, state, text) : unknown(text),
      after: sideOf(after, state, text),
    }))
}

function sideOf(row: LeakRow, state: string, text: Text): Side {
  const cell = cellOf(row, state)
  if (!cell) return unknown(text)
  return { state: stateOf(cell, row), words: cellWords(cell, row, text) }
}

function unknown(text: Text): Side {
  return { state: 'idle', words: text.policies.noRule }
}

/** Without the matrix of the daemon: the compiled rule for now, and the words of the policy for the other states. */
function estimated(pending: Pending, before: LeakRow | undefined, given: Given): Effect[] {
  const { dryRun, resolved, text } = given
  const effects: Effect[] = []
  const rules = dryRun?.plan?.parts.rules
  const find = (lines: readonly string[] | undefined, name: string | undefined) =>
    lines?.map(readRule).find((rule) => rule?.name === name)
  const now = find(rules?.added, pending.name)
  const was = find(rules?.removed, pending.applied?.name ?? pending.name)
  if (now && now.action !== was?.action)
    effects.push({
      when: text.policies.now,
      before: was ? actionSide(was.action, text) : before ? sideOf(before, 'up', text) : unknown(text),
      after: actionSide(now.action, text),
    })
  const way = resolved(pending)
  if (!way) return effects
  for (const [situation, state] of [
    ['first', 'degraded'],
    ['down', 'down'],
  ] as const) {
    if (way.hops.length === 0 && effects.length > 0) continue
    const old = before ? sideOf(before, state, text) : unknown(text)
    const after = predictedSide(predict(way, situation), text)
    if (old.state !== after.state)
      effects.push({ when: text.policies.states[state] ?? state, before: old, after })
  }
  return effects
}

function actionSide(action: string, text: Text): Side {
  const state = stateOfAction(action)
  const via = viaOfAction(action)
  if (state === 'blocked') return { state, words: text.policies.cellBlocked }
  if (state === 'direct') return { state, words: via ? text.policies.chosen(via) : text.policies.cellDIRECT }
  return { state, words: via ? text.policies.via(via) : action }
}

export function predictedSide({ state, via }: Prediction, text: Text): Side {
  if (state === 'blocked') return { state, words: text.policies.cellBlocked }
  if (state === 'direct')
    return { state, words: via.length > 0 ? text.policies.chosen(via.join(' + ')) : text.policies.cellDIRECT }
  return { state, words: text.policies.via(via.join(' + ')) }
}

/** The effects that let traffic out in the clear where it did not leave so before. */
export function opening(effects: readonly Effect[]): Effect[] {
  const clear = (side: Side) => side.state === 'direct' || side.state === 'leak'
  return effects.filter((effect) => clear(effect.after) && !clear(effect.before))
}
