// A filter that is set, with a button that removes it.

import type { ReactNode } from 'react'
import { useText } from '@/text'
import { Icon } from './icons'

interface Props {
  label: string
  value: ReactNode
  onRemove: () => void
}

export function RemovableFilter({ label, value, onRemove }: Props) {
  return (
    <span className="flt flt--on">
      {label} <b>{value}</b>
      <RemoveButton label={label} onRemove={onRemove} />
    </span>
  )
}

export function RemoveButton({ label, onRemove }: Omit<Props, 'value'>) {
  const { log } = useText().dns
  return (
    <button type="button" className="x" aria-label={log.removeFilter(label)} onClick={onRemove}>
      <Icon name="x" />
    </button>
  )
}
