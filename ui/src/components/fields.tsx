// Form fields: a label, a control, what is wrong with it, and a hint.

import { useId, type ComponentPropsWithoutRef, type ReactNode } from 'react'

interface FieldProps {
  label: ReactNode
  hint?: ReactNode
  error?: string
  children: (id: string, describedBy: string | undefined) => ReactNode
}

export function Field({ label, hint, error, children }: FieldProps) {
  const id = useId()
  const described =
    [hint ? `${id}-hint` : '', error ? `${id}-error` : ''].filter(Boolean).join(' ') || undefined
  return (
    <div className="formrow">
      <label htmlFor={id}>{label}</label>
      {children(id, described)}
      {error ? (
        <p className="formrow__error" id={`${id}-error`}>
          {error}
        </p>
      ) : null}
      {hint ? (
        <p className="dim sm" id={`${id}-hint`}>
          {hint}
        </p>
      ) : null}
    </div>
  )
}

interface TextFieldProps extends Omit<ComponentPropsWithoutRef<'input'>, 'onChange' | 'value'> {
  label: ReactNode
  hint?: ReactNode
  error?: string
  value: string
  onChange: (value: string) => void
}

export function TextField({ label, hint, error, value, onChange, ...rest }: TextFieldProps) {
  return (
    <Field label={label} hint={hint} error={error}>
      {(id, describedBy) => (
        <input
          {...rest}
          id={id}
          className={error ? 'field invalid' : 'field'}
          value={value}
          aria-invalid={error ? true : undefined}
          aria-describedby={describedBy}
          onChange={(event) => onChange(event.target.value)}
        />
      )}
    </Field>
  )
}

interface TextAreaProps extends Omit<ComponentPropsWithoutRef<'textarea'>, 'onChange' | 'value'> {
  label: ReactNode
  hint?: ReactNode
  error?: string
  value: string
  onChange: (value: string) => void
}

export function TextArea({ label, hint, error, value, onChange, ...rest }: TextAreaProps) {
  return (
    <Field label={label} hint={hint} error={error}>
      {(id, describedBy) => (
        <textarea
          rows={5}
          {...rest}
          id={id}
          className={error ? 'field field--area invalid' : 'field field--area'}
          value={value}
          aria-invalid={error ? true : undefined}
          aria-describedby={describedBy}
          onChange={(event) => onChange(event.target.value)}
        />
      )}
    </Field>
  )
}

interface SelectProps<T extends string> {
  label: ReactNode
  hint?: ReactNode
  error?: string
  value: T
  options: readonly (readonly [value: T, label: string])[]
  onChange: (value: T) => void
  disabled?: boolean
}

/** A choice among many. A value of the daemon that is none of the options is kept and shown as it is. */
export function Select<T extends string>({
  label,
  hint,
  error,
  value,
  options,
  onChange,
  disabled,
}: SelectProps<T>) {
  const known = options.some(([option]) => option === value)
  return (
    <Field label={label} hint={hint} error={error}>
      {(id, describedBy) => (
        <select
          id={id}
          className={error ? 'field invalid' : 'field'}
          value={value}
          disabled={disabled}
          aria-invalid={error ? true : undefined}
          aria-describedby={describedBy}
          onChange={(event) => onChange(event.target.value as T)}
        >
          {known ? null : <option value={value}>{value}</option>}
          {options.map(([option, name]) => (
            <option key={option} value={option}>
              {name}
            </option>
          ))}
        </select>
      )}
    </Field>
  )
}

interface CheckProps {
  label: ReactNode
  hint?: ReactNode
  checked: boolean
  onChange: (checked: boolean) => void
  disabled?: boolean
}

export function Check({ label, hint, checked, onChange, disabled }: CheckProps) {
  const id = useId()
  return (
    <div className="formrow">
      <label className="check" htmlFor={id}>
        <input
          id={id}
          type="checkbox"
          checked={checked}
          disabled={disabled}
          aria-describedby={hint ? `${id}-hint` : undefined}
          onChange={(event) => onChange(event.target.checked)}
        />
        {label}
      </label>
      {hint ? (
        <p className="dim sm" id={`${id}-hint`}>
          {hint}
        </p>
      ) : null}
    </div>
  )
}
