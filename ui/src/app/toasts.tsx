// Short messages about what was done. They go away by themselves; errors stay until they are closed.

import { useEffect, useSyncExternalStore } from 'react'
import { ApiError } from '@/api/client'
import type { Schemas } from '@/api/client'
import { Unreachable } from '@/api/errors'
import { IconButton } from '@/components/button'
import { useText } from '@/text'

interface Toast {
  id: number
  message: string
  detail?: string
  lasting: boolean
}

let toasts: readonly Toast[] = []
let next = 1
const listeners = new Set<() => void>()

function set(changed: readonly Toast[]) {
  toasts = changed
  for (const listener of listeners) listener()
}

function add(toast: Omit<Toast, 'id'>) {
  set([...toasts.slice(-3), { ...toast, id: next++ }])
}

/** Says that something was done, with the warnings of the daemon. */
export function say(message: string, warnings: Schemas['Warning'][] = []) {
  const detail = warnings.map((warning) => warning.message).join(' ')
  add({ message, detail: detail || undefined, lasting: detail !== '' })
}

/** Says that something failed. */
export function sayError(error: Error) {
  if (error instanceof ApiError) {
    const fields = error.fields.map((field) => `${field.path}: ${field.message}`).join(' ')
    const id = error.requestId ? ` (${error.requestId})` : ''
    add({ message: error.message, detail: `${fields} ${error.code}${id}`.trim(), lasting: true })
  } else add({ message: error instanceof Unreachable ? '' : error.message, lasting: true })
}

export function Toasts() {
  const text = useText()
  const shown = useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    () => toasts,
  )
  return (
    <div className="toasts" role="status" aria-live="polite">
      {shown.map((toast) => (
        <Shown key={toast.id} toast={toast} unreachable={text.common.unreachable} close={text.common.close} />
      ))}
    </div>
  )
}

function Shown({ toast, unreachable, close }: { toast: Toast; unreachable: string; close: string }) {
  const remove = () => set(toasts.filter((other) => other.id !== toast.id))
  useEffect(() => {
    if (toast.lasting) return
    const timer = window.setTimeout(() => set(toasts.filter((other) => other.id !== toast.id)), 6000)
    return () => window.clearTimeout(timer)
  }, [toast])
  return (
    <div className="toast">
      <div>
        <p className="med">{toast.message || unreachable}</p>
        {toast.detail ? <p className="sm">{toast.detail}</p> : null}
      </div>
      <IconButton icon="x" label={close} small onClick={remove} />
    </div>
  )
}
