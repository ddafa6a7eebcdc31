// What the gateway says to the draft, without saving it.

import type { UseQueryResult } from '@tanstack/react-query'
import type { Answer, Schemas } from '@/api/client'
import { Failure } from '@/components/section'
import { Glyph, StateWord } from '@/components/state'
import { useText } from '@/text'
import { readRule, stateOfAction } from './model'

interface Props {
  query: UseQueryResult<Answer<Schemas['PlanResult']>>
  name: string
  /** What is checked is older than what is written. */
  pending: boolean
  started: boolean
}

export function Checked({ query, name, pending, started }: Props) {
  const text = useText()
  const result = query.data?.data
  if (!started) return null
  const lines = result?.plan?.parts.rules?.added ?? []
  // Others say which policies stay pending.
  const warnings = result?.warnings.filter((warning) => /^resources\.\w+\[0\]/.test(warning.path)) ?? []
  const rule = lines.map(readRule).find((each) => each?.name === name)
  return (
    <section className="sec check-result" aria-live="polite">
      <h2 className="med">{text.policies.checks}</h2>
      {query.error && !result ? <Failure error={query.error} /> : null}
      {pending || !result ? (
        query.error ? null : (
          <p className="dim">{text.policies.checking}</p>
        )
      ) : result.valid ? (
        <StateWord state="ok">{text.policies.valid}</StateWord>
      ) : (
        <ul className="problems">
          {result.errors.map((problem) => (
            <li key={`${problem.path} ${problem.message}`}>
              <Glyph state="down" />
              <span>
                <code>{problem.path.replace(/^resources\.\w+\[0\]\.?/, '') || '-'}</code>{' '}
                <span lang="en">{problem.message}</span>
              </span>
            </li>
          ))}
        </ul>
      )}
      {warnings.length > 0 ? (
        <ul className="problems">
          {warnings.map((warning) => (
            <li key={warning.message}>
              <Glyph state="degraded" />
              <span lang="en">{warning.message}</span>
            </li>
          ))}
        </ul>
      ) : null}
      {rule ? (
        <p className="sm">
          <span className="dim">{text.policies.compiledNow}:</span>{' '}
          <StateWord state={stateOfAction(rule.action)}>{rule.action}</StateWord>
        </p>
      ) : null}
    </section>
  )
}
