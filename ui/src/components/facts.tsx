// Facts of a thing: names and values in two columns, or one beside the other. A value that is missing is a dash.

import type { ReactNode } from 'react'

/** A name, its value, and a class of the value. */
export type Fact = readonly [name: string, value: ReactNode, className?: string] | false | null

interface Props {
  facts: Fact[]
  /** `kv`: one beside the other, with large values. */
  className?: string
  label?: string
  /** It appears after a question, and is read out. */
  isAnswer?: boolean
}

export function Facts({ facts, className = 'facts', label, isAnswer }: Props) {
  return (
    <dl className={className} aria-label={label} role={isAnswer ? 'status' : undefined}>
      {facts.map((fact) =>
        fact ? (
          <div className="facts__row" key={fact[0]}>
            <dt>{fact[0]}</dt>
            <dd className={fact[2]}>{fact[1] === '' ? '-' : (fact[1] ?? '-')}</dd>
          </div>
        ) : null,
      )}
    </dl>
  )
}
