// Short messages about what was done, and those that are shown. They go away by themselves; errors stay until they are
// closed.

import { useSyncExternalStore } from 'react'
import { ApiError } from '@/api/client'
import type { Schemas } from '@/api/client'
import { Unreachable } from '@/api/errors'
import { otherFields } from '@/api/other-fields'

export interface Toast {
  id: number
  message: string
  detail?: string
  lasting: boolean
  /** The message is one of the gateway, which speaks English. */
  english?: boolean
  undo?: () => void
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

/** Says that something was done, with the warnings of the daemon, and offers to undo it. */
export function say(message: string, warnings: Schemas['Warning'][] = [], undo?: () => void) {
  const detail = warnings.map((warning) => warning.message).join(' ')
  add({ message, detail: detail || undefined, lasting: detail !== '', undo })
}

/** Says that something failed. */
export function sayError(error: Error) {
  if (error instanceof ApiError) {
    const fields = otherFields(error)
      .map((field) => `${field.path}: ${field.message}`)
      .join(' ')
    const id = error.requestId ? ` (${error.requestId})` : ''
    add({
      message: error.message,
      detail: `${fields} ${error.code}${id}`.trim(),
      lasting: true,
      english: true,
    })
  } else add({ message: error instanceof Unreachable ? '' : error.message, lasting: true })
}

/** The messages that are shown, oldest first. */
export function useToasts(): readonly Toast[] {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    () => toasts,
  )
}

export function removeToast(toast: Toast) {
  set(toasts.filter((other) => other.id !== toast.id))
}
