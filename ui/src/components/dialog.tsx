// A dialog over the page, by the element of the browser: it keeps the focus inside and closes by Esc.

import { useEffect, useId, useLayoutEffect, useRef, type ReactNode } from 'react'
import { useText } from '@/text'
import { IconButton } from './button'

interface Props {
  open: boolean
  onClose: () => void
  title: ReactNode
  /** It cannot be closed without an answer. */
  firm?: boolean
  wide?: boolean
  children: ReactNode
}

const FIELD = ':is(input, select, textarea):not(:disabled, [type="hidden"], [type="file"])'

export function Dialog({ open, onClose, title, firm = false, wide = false, children }: Props) {
  const text = useText()
  const id = useId()
  const element = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    const dialog = element.current
    if (!dialog) return
    if (open && !dialog.open) {
      dialog.showModal()
      // The browser would choose the button that closes it.
      dialog.querySelector<HTMLElement>(FIELD)?.focus()
    }
    if (!open && dialog.open) dialog.close()
  }, [open])
  // One that goes away while it is open gives the focus back, too.
  useLayoutEffect(() => {
    const dialog = element.current
    return () => dialog?.close()
  }, [])
  return (
    <dialog
      ref={element}
      className={wide ? 'dialog dialog--wide' : 'dialog'}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault()
        if (!firm) onClose()
      }}
    >
      {open ? (
        <>
          <div className="dialog__h">
            <h2 id={id}>{title}</h2>
            {firm ? null : <IconButton icon="x" label={text.common.close} onClick={onClose} />}
          </div>
          {children}
        </>
      ) : null}
    </dialog>
  )
}
