// Short messages about what was done. They go away by themselves; errors stay until they are closed.

import { useEffect, useSyncExternalStore } from 'react'
import { ApiError } from '@/api/client'
import type { Schemas } from '@/api/client'
import { Unreachable } from '@/api/errors'
import { otherFields } from '@/api/other-fields'
import { slowChanges } from '@/api/waiting'
import { Button, IconButton } from '@/components/button'
import { useText } from '@/text'
import { useVerdict } from './verdict'

interface Toast {
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

export function Toasts() {
  const text = useText()
  const shown = useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    () => toasts,
  )
  const waiting = useSyncExternalStore(slowChanges.subscribe, slowChanges.count)
  const { late } = useVerdict()
  return (
    <div className="toasts" role="status" aria-live="polite">
      {waiting > 0 && late ? (
        <div className="toast">
          <p className="med">{text.shell.changeWaits}</p>
        </div>
      ) : null}
      {shown.map((toast) => (
        <Shown
          key={toast.id}
          toast={toast}
          unreachable={text.common.unreachable}
          close={text.common.close}
          undo={text.common.undo}
        />
      ))}
    </div>
  )
}

interface ShownProps {
  toast: Toast
  unreachable: string
  close: string
  undo: string
}

/** Time for which a message stays, in milliseconds; one that can be undone stays longer. */
const STAYS = 6000
const STAYS_UNDO = 12_000

function Shown({ toast, unreachable, close, undo }: ShownProps) {
  const remove = () => set(toasts.filter((other) => other.id !== toast.id))
  useEffect(() => {
    if (toast.lasting) return
    const timer = window.setTimeout(
      () => set(toasts.filter((other) => other.id !== toast.id)),
      toast.undo ? STAYS_UNDO : STAYS,
    )
    return () => window.clearTimeout(timer)
  }, [toast])
  return (
    <div className="toast">
      <div>
        <p className="med" lang={toast.english ? 'en' : undefined}>
          {toast.message || unreachable}
        </p>
        {toast.detail ? (
          <p className="sm" lang="en">
            {toast.detail}
          </p>
        ) : null}
      </div>
      {toast.undo ? (
        <Button
          size="small"
          onClick={() => {
            toast.undo?.()
            remove()
          }}
        >
          {undo}
        </Button>
      ) : null}
      <IconButton icon="x" label={close} small onClick={remove} />
    </div>
  )
}
