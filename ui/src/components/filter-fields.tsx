// Fields that narrow a list: what is typed, and a choice. Their labels are for screen readers only.

import { useId, useState, type ReactNode } from 'react'
import { Icon, type IconName } from './icons'

interface BoxProps {
  label: string
  placeholder: string
  icon?: IconName
  /** The key `/` goes to it. */
  isFilter?: boolean
  value: string | undefined
  onChange: (value: string | undefined) => void
}

export function FilterBox({
  label,
  placeholder,
  icon = 'search',
  isFilter = true,
  value,
  onChange,
}: BoxProps) {
  return (
    <label className="search">
      <Icon name={icon} />
      <span className="sr">{label}</span>
      <input
        className="field"
        data-filter={isFilter || undefined}
        type="search"
        placeholder={placeholder}
        value={value ?? ''}
        onChange={(event) => onChange(event.target.value || undefined)}
      />
    </label>
  )
}

interface TypedProps {
  label: string
  placeholder: string
  value: string
  onChange: (value: string) => void
}

/** A filter of a search that costs something: it changes when it was typed to the end. */
export function TypedFilter({ label, placeholder, value, onChange }: TypedProps) {
  const id = useId()
  const [typed, setTyped] = useState(value)
  const [known, setKnown] = useState(value)
  // The address changed by something else than this field.
  if (value !== known) {
    setKnown(value)
    setTyped(value)
  }
  return (
    <form
      className="search"
      onSubmit={(event) => {
        event.preventDefault()
        onChange(typed.trim())
      }}
    >
      <Icon name="search" />
      <label className="sr" htmlFor={id}>
        {label}
      </label>
      <input
        id={id}
        className="field"
        type="search"
        data-filter
        placeholder={placeholder}
        value={typed}
        spellCheck={false}
        autoCapitalize="none"
        onChange={(event) => {
          setTyped(event.target.value)
          if (event.target.value === '') onChange('')
        }}
        onBlur={() => {
          if (typed.trim() !== value) onChange(typed.trim())
        }}
      />
    </form>
  )
}

interface SelectProps {
  label: string
  /** The choice that narrows nothing. */
  any: ReactNode
  options: readonly (readonly [value: string, label: string])[]
  value: string | undefined
  onChange: (value: string | undefined) => void
}

/** A value that is none of the options is kept and shown as it is. */
export function FilterSelect({ label, any, options, value = '', onChange }: SelectProps) {
  const known = value === '' || options.some(([option]) => option === value)
  return (
    <label>
      <span className="sr">{label}</span>
      <select className="field" value={value} onChange={(event) => onChange(event.target.value || undefined)}>
        <option value="">{any}</option>
        {known ? null : <option value={value}>{value}</option>}
        {options.map(([option, words]) => (
          <option key={option} value={option}>
            {words}
          </option>
        ))}
      </select>
    </label>
  )
}
