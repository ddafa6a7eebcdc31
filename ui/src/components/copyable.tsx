// A text that is copied by a button beside it.

import { say } from '@/session/toasts'
import { useText } from '@/text'
import { IconButton } from './button'

export function Copyable({ value, label }: { value: string; label: string }) {
  const text = useText()
  return (
    <span className="copyable">
      <code>{value}</code>
      <IconButton
        small
        icon="copy"
        label={`${text.common.copy}: ${label}`}
        onClick={() => void navigator.clipboard.writeText(value).then(() => say(text.common.copied))}
      />
    </span>
  )
}
