// A form that sends a change: what was wrong with the last one, its fields, and its buttons.

import type { ReactNode, RefObject } from 'react'
import { useText } from '@/text'
import { Button, type ButtonProps } from './button'
import { Failure } from './section'

interface Props extends Pick<
  ButtonProps,
  'kind' | 'size' | 'icon' | 'needs' | 'disabled' | 'aria-describedby'
> {
  /** The change that it sends. */
  of?: { busy: boolean; error: Error | null }
  onSubmit: () => void
  /** The word on the button that sends. */
  word: ReactNode
  onCancel?: () => void
  className?: string
  /** The browser does not check the fields. */
  noValidate?: boolean
  formRef?: RefObject<HTMLFormElement | null>
  /** More buttons after those of the form. */
  buttons?: ReactNode
  children: ReactNode
}

export function ActionForm(props: Props) {
  const {
    of,
    onSubmit,
    word,
    onCancel,
    className = 'form',
    formRef,
    noValidate,
    buttons,
    children,
    ...button
  } = props
  const text = useText()
  const wide = className.includes('form--2') ? 'wide' : undefined
  return (
    <form
      ref={formRef}
      className={className}
      noValidate={noValidate}
      onSubmit={(event) => {
        event.preventDefault()
        onSubmit()
      }}
    >
      {of?.error ? (
        <div className={wide}>
          <Failure error={of.error} />
        </div>
      ) : null}
      {children}
      <div className={wide ? 'btns wide' : 'btns'}>
        <Button kind="primary" submit busy={of?.busy} {...button}>
          {word}
        </Button>
        {onCancel ? (
          <Button kind="ghost" size={button.size} onClick={onCancel}>
            {text.common.cancel}
          </Button>
        ) : null}
        {buttons}
      </div>
    </form>
  )
}
