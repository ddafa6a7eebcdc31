// The frame of a form of an object, with the errors of the gateway and the buttons; and what was typed as values.

import type { ReactNode } from 'react'
import type { Role } from '@/session/roles'
import { useText } from '@/text'
import { Button } from './button'
import type { Fields } from './draft'
import type { Edit } from './edit'
import { Failure } from './section'

/** The values of a form as they are typed: numbers and lists are text. */
export type Values = Record<string, string | boolean>

interface FormProps<T extends Fields> {
  edit: Edit<T>
  /** The word on the button that saves. */
  action?: string
  needs?: Role
  onCancel?: () => void
  /** The form may be saved without a change, such as that of a new object. */
  isNew?: boolean
  /** More buttons after those of the form. */
  buttons?: ReactNode
  children: ReactNode
}

/** The frame of a form: errors at the top, the fields, and the buttons. Ctrl+Enter saves. */
export function EditForm<T extends Fields>({
  edit,
  action,
  needs = 'operator',
  onCancel,
  isNew = false,
  buttons,
  children,
}: FormProps<T>) {
  const text = useText()
  const { dirty } = edit.draft
  return (
    // The keys are those of the fields inside it.
    // eslint-disable-next-line jsx-a11y/no-noninteractive-element-interactions
    <form
      className="form form--page"
      onSubmit={(event) => {
        event.preventDefault()
        edit.submit()
      }}
      onKeyDown={(event) => {
        if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return
        event.preventDefault()
        event.currentTarget.requestSubmit()
      }}
    >
      <Failure error={edit.error} />
      {children}
      <div className="btns formend">
        <Button kind="primary" submit needs={needs} busy={edit.busy} disabled={!isNew && !dirty}>
          {action ?? (isNew ? text.common.create : text.common.save)}
        </Button>
        {dirty && !isNew ? (
          <Button kind="ghost" onClick={edit.forget}>
            {text.common.discardDraft}
          </Button>
        ) : null}
        {onCancel ? (
          <Button
            kind="ghost"
            onClick={() => {
              edit.forget()
              onCancel()
            }}
          >
            {text.common.cancel}
          </Button>
        ) : null}
        {buttons}
        {dirty ? <span className="dim sm">{text.common.draftKept}</span> : null}
      </div>
      {edit.dialog}
    </form>
  )
}

/** The words of a list that is typed in one field. */
export function wordsOf(typed: string | boolean): string[] {
  return String(typed)
    .split(/[\s,]+/)
    .filter(Boolean)
}

/** A number that is typed; null if the field is empty. */
export function numberOf(typed: string | boolean): number | null {
  const trimmed = String(typed).trim()
  return trimmed === '' ? null : Number(trimmed)
}

/** A text that is typed; null if the field is empty. */
export function textOf(typed: string | boolean): string | null {
  const trimmed = String(typed).trim()
  return trimmed === '' ? null : trimmed
}
