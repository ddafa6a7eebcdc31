// The way of traffic: hops in a line.

import type { ReactNode } from 'react'
import { Glyph, type State } from './state'

/** How the hops of a way belong together: one after another, one or else the next, or shared. */
export type Joining = 'line' | 'or' | 'split'

const CLASS: Record<Joining, string> = { line: 'path', or: 'path path--or', split: 'path path--split' }
const FRAME: Record<State, string> = {
  ok: 'hop--ok',
  blocked: 'hop--stop',
  direct: 'hop--direct',
  degraded: 'hop--down',
  down: 'hop--down',
  leak: 'hop--direct',
  unknown: 'hop--idle',
  idle: 'hop--idle',
}

export function Path({ joining, children }: { joining: Joining; children: ReactNode }) {
  return <span className={CLASS[joining]}>{children}</span>
}

export function HopChip({ state, name, kind }: { state: State; name: string; kind?: string }) {
  return (
    <span className={`hop ${FRAME[state]}`}>
      <b>
        <Glyph state={state} />
        {name}
        {kind === undefined ? null : <span className="kind">{kind}</span>}
      </b>
    </span>
  )
}
