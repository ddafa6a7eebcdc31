// Two lines of a cell: what it is, and small below it what is said of it.

import type { ReactNode } from 'react'

export function TwoLines({ second, children }: { second: ReactNode; children: ReactNode }) {
  return (
    <span className="two">
      <span>{children}</span>
      {second ? <small>{second}</small> : null}
    </span>
  )
}
