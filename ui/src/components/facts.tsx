// Facts of a thing: names and values in two columns. A value that is missing is a dash.

import type { ReactNode } from 'react'

export type Fact = readonly [name: string, value: ReactNode] | false | null

export function Facts({ facts }: { facts: Fact[] }) {
  return (
    <dl className="facts">
      {facts.map((fact) =>
        fact ? (
          <div className="facts__row" key={fact[0]}>
            <dt>{fact[0]}</dt>
            <dd>{fact[1] ?? '-'}</dd>
          </div>
        ) : null,
      )}
    </dl>
  )
}
