// A dialog over the page, by the element of the browser: it keeps the focus inside and closes by Esc.

import { useEffect, useId, useRef, type ReactNode } from 'react'
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

export function Dialog({ open, onClose, title, firm = false, wide = false, children }: Props) {
  const text = useText()
  const id = useId()
  const element = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    const dialog = element.current
    if (!dialog) return
    if (open && !dialog.open) dialog.showModal()
    if (!open && dialog.open) dialog.close()
  }, [open])
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
