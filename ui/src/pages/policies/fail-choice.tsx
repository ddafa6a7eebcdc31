// The failure policy: what happens while hops are down, in a picture and in words.

import { useId } from 'react'
import { HopChip, Path } from '@/components/path'
import type { State } from '@/components/state'
import { useText } from '@/text'
import type { FailPolicy } from './model'

const CHOICES: FailPolicy[] = ['fail-closed', 'fail-degraded', 'fail-open']
const ENDS: Record<string, State> = { 'fail-closed': 'blocked', 'fail-degraded': 'ok', 'fail-open': 'direct' }

interface Props {
  value: FailPolicy | null
  /** The policy may leave it to its profile. */
  inherits: boolean
  error?: string
  onChange: (value: FailPolicy | null) => void
}

export function FailChoice({ value, inherits, error, onChange }: Props) {
  const text = useText()
  const name = useId()
  return (
    <fieldset className="failchoice">
      <legend className="med">{text.policies.failLabel}</legend>
      {CHOICES.map((choice) => (
        <label key={choice} className={value === choice ? 'choice is-on' : 'choice'}>
          <input type="radio" name={name} checked={value === choice} onChange={() => onChange(choice)} />
          <span className="med">{text.policies.failOptions[choice]}</span>
          <small>{text.policies.failSentences[choice]}</small>
          <span className="choice__picture" aria-hidden="true">
            <Path joining="line">
              <HopChip state="down" name={text.policies.picture.hop} />
              <HopChip state={ENDS[choice] ?? 'unknown'} name={text.policies.picture[choice]} />
            </Path>
          </span>
        </label>
      ))}
      {inherits ? (
        <label className={value === null ? 'choice is-on' : 'choice'}>
          <input type="radio" name={name} checked={value === null} onChange={() => onChange(null)} />
          <span className="med">{text.policies.failOfProfile}</span>
        </label>
      ) : null}
      {value !== null && !CHOICES.includes(value) ? <code>{value}</code> : null}
      {error ? <p className="formrow__error">{error}</p> : null}
    </fieldset>
  )
}
