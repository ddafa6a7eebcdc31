// A choice of one among few, all visible.

import { useCaller } from '@/session/caller'
import { mayDo, type Role } from '@/session/roles'
import { useText } from '@/text'

interface Props<T extends string> {
  label: string
  value: T
  options: readonly (readonly [value: T, label: string])[]
  onChange: (value: T) => void
  disabled?: boolean
  /** Role that a change needs. */
  needs?: Role
}

export function Segmented<T extends string>({ label, value, options, onChange, disabled, needs }: Props<T>) {
  const text = useText()
  const { role } = useCaller()
  const forbidden = needs !== undefined && !mayDo(role, needs)
  return (
    <div
      className="seg"
      role="group"
      aria-label={label}
      title={forbidden ? text.common.needsRole(needs) : undefined}
    >
      {options.map(([option, name]) => (
        <button
          key={option}
          type="button"
          aria-pressed={option === value}
          disabled={disabled === true || forbidden}
          onClick={() => onChange(option)}
        >
          {name}
        </button>
      ))}
    </div>
  )
}
