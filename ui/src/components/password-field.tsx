// A password: hidden unless one wants to see it, with an estimate of its strength if it is a new one.

import { useState, type ReactNode } from 'react'
import { useText } from '@/text'
import { Field } from './fields'
import { strengthOf } from './password-strength'

interface Props {
  label: string
  value: string
  onChange: (value: string) => void
  hint?: ReactNode
  error?: string
  /** A password that is chosen now. */
  fresh?: boolean
  required?: boolean
  autoComplete?: string
}

export function PasswordField({ label, value, onChange, hint, error, fresh, required, autoComplete }: Props) {
  const text = useText()
  const [shown, setShown] = useState(false)
  const strength = strengthOf(value)
  const name = text.system.strength[strength] ?? ''
  return (
    <Field label={label} hint={hint} error={error}>
      {(id, describedBy) => (
        <>
          <span className="pw">
            <input
              id={id}
              className={error ? 'field invalid' : 'field'}
              type={shown ? 'text' : 'password'}
              value={value}
              required={required}
              autoComplete={autoComplete ?? (fresh ? 'new-password' : 'current-password')}
              spellCheck={false}
              aria-invalid={error ? true : undefined}
              aria-describedby={describedBy}
              onChange={(event) => onChange(event.target.value)}
            />
            <button type="button" className="btn" aria-pressed={shown} onClick={() => setShown(!shown)}>
              {shown ? text.system.hidePassword : text.system.showPassword}
            </button>
          </span>
          {fresh && value ? (
            <span className="strength" role="status">
              <meter
                min={0}
                max={4}
                value={strength}
                aria-label={text.system.accounts.strength}
                aria-valuetext={name}
              />
              <span className="sm mid">{name}</span>
            </span>
          ) : null}
        </>
      )}
    </Field>
  )
}
