// The messages of the session, drawn above the page.

import { useEffect, useSyncExternalStore } from 'react'
import { slowChanges } from '@/api/waiting'
import { Button, IconButton } from './button'
import { useVerdict } from './verdict'
import { removeToast, useToasts, type Toast } from '@/session/toasts'
import { useText } from '@/text'

export function Toasts() {
  const text = useText()
  const shown = useToasts()
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
  const remove = () => removeToast(toast)
  useEffect(() => {
    if (toast.lasting) return
    const timer = window.setTimeout(() => removeToast(toast), toast.undo ? STAYS_UNDO : STAYS)
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
