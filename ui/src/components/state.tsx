// States: a shape, a word and a colour, in that order.

import type { ReactNode } from 'react'

export type State = 'ok' | 'blocked' | 'direct' | 'degraded' | 'down' | 'leak' | 'unknown' | 'idle'

/** The shape of a state. A word stands beside it. */
export function Glyph({ state, className = '' }: { state: State; className?: string }) {
  return (
    <svg className={`g g--${state} ${className}`} aria-hidden="true">
      <use href={`#g-${state}`} />
    </svg>
  )
}

/** A state in words. */
export function StateWord({ state, children }: { state: State; children: ReactNode }) {
  return (
    <span className={`st st--${state}`}>
      <Glyph state={state} />
      {children}
    </span>
  )
}

/** A short label beside a name. */
export function Tag({ kind, children }: { kind?: 'direct' | 'pending'; children: ReactNode }) {
  return <span className={kind ? `tag tag--${kind}` : 'tag'}>{children}</span>
}
