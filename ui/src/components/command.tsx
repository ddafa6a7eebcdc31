// A line to copy: a command, a key.

import { say } from '@/session/toasts'
import { useText } from '@/text'
import { IconButton } from './button'

export function Command({ children, label }: { children: string; label?: string }) {
  const text = useText()
  return (
    <div className="cmd">
      <code>{children}</code>
      <IconButton
        icon="copy"
        label={label ?? text.common.copy}
        small
        onClick={() => void copy(children).then((done) => (done ? say(text.common.copied) : undefined))}
      />
    </div>
  )
}

/** Copies a text. Without TLS browsers offer no clipboard, so a selection is copied instead. */
export async function copy(value: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(value)
    return true
  } catch {
    const field = document.createElement('textarea')
    field.value = value
    field.className = 'sr'
    // A dialog keeps the focus inside, so the field is inside it.
    const place = document.querySelector('dialog[open]') ?? document.body
    place.append(field)
    field.select()
    const done = document.execCommand('copy')
    field.remove()
    return done
  }
}
