// Forms of an object: their frame with the errors of the gateway and the buttons, and fields by a list.

import type { ReactNode } from 'react'
import type { ApiError } from '@/api/client'
import type { Role } from '@/session/roles'
import { useText } from '@/text'
import { Button } from './button'
import type { Draft, Fields } from './draft'
import type { Edit } from './edit'
import { Check, ErrorSummary, TextArea, TextField } from './fields'
import { PickOne } from './picker'
import { Failure } from './section'

/** The values of a form as they are typed: numbers and lists are text. */
export type Values = Record<string, string | boolean>

/** A text is a label, or a label with a hint. */
export type FieldTexts<T> = Record<keyof T & string, string | readonly [label: string, hint: string]>

type Kind = 'text' | 'number' | 'check' | 'select' | 'area' | 'secret'

/** What a field that is drawn in another way is given. */
export interface RenderedField {
  label: string
  hint?: ReactNode
  error?: string
  value: string
  onChange: (value: string) => void
}

export interface FieldSpec<T> {
  field: keyof T & string
  kind?: Kind
  /** Path of the field in the errors of the daemon; the name of the field if not given. */
  path?: string
  options?: readonly (readonly [value: string, label: string])[]
  required?: boolean
  min?: number
  max?: number
  wide?: boolean
  disabled?: boolean
  /** Draws the field in another way. */
  render?: (field: RenderedField) => ReactNode
  /** The options of a choice are still being read. */
  loading?: boolean
  rows?: number
  /** A hint that depends on the data; it replaces that of the catalogue. */
  hint?: ReactNode
}

interface FieldsProps<T extends Values> {
  draft: Draft<T>
  fields: (FieldSpec<T> | false | null | undefined)[]
  texts: FieldTexts<T>
  error: ApiError | null
}

/** The fields of a form, in two columns where there is room. */
export function FormFields<T extends Values>({ draft, fields, texts, error }: FieldsProps<T>) {
  return (
    <div className="form form--2 form--fields">
      {fields.map((spec) =>
        spec ? (
          <div key={spec.field} className={spec.wide || spec.kind === 'area' ? 'wide' : undefined}>
            <OneField draft={draft} spec={spec} texts={texts} error={error} />
          </div>
        ) : null,
      )}
    </div>
  )
}

interface OneFieldProps<T extends Values> extends Omit<FieldsProps<T>, 'fields'> {
  spec: FieldSpec<T>
}

function OneField<T extends Values>({ draft, spec, texts, error }: OneFieldProps<T>) {
  const named = texts[spec.field]
  const label = typeof named === 'string' ? named : named[0]
  const hint = spec.hint ?? (typeof named === 'string' ? undefined : named[1])
  const problem = error?.of(spec.path ?? spec.field)
  const value = draft.value[spec.field]
  const change = (next: string | boolean) => draft.set(spec.field, next as T[keyof T & string])
  if (spec.kind === 'check')
    return (
      <>
        <Check
          label={label}
          hint={hint}
          checked={value === true}
          disabled={spec.disabled}
          onChange={change}
        />
        {problem ? <p className="formrow__error">{problem}</p> : null}
      </>
    )
  const common = { label, hint, error: problem, value: String(value ?? ''), onChange: change }
  if (spec.render) return spec.render(common)
  if (spec.kind === 'select')
    return (
      <PickOne {...common} options={spec.options ?? []} disabled={spec.disabled} loading={spec.loading} />
    )
  if (spec.kind === 'area') return <TextArea {...common} rows={spec.rows ?? 4} spellCheck={false} />
  return (
    <TextField
      {...common}
      type={spec.kind === 'number' ? 'number' : spec.kind === 'secret' ? 'password' : 'text'}
      autoComplete={spec.kind === 'secret' ? 'new-password' : 'off'}
      spellCheck={false}
      required={spec.required}
      disabled={spec.disabled}
      min={spec.min}
      max={spec.max}
    />
  )
}

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
      <FormErrors edit={edit} />
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

/** What was wrong with the last save. */
export function FormErrors<T extends Fields>({ edit: { error, problems } }: { edit: Edit<T> }) {
  if (!error) return null
  return problems && problems.fields.length > 0 ? (
    <ErrorSummary error={problems} />
  ) : (
    <Failure error={error} />
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

/** The lines of a text field without empty ones. */
export function linesOf(written: string): string[] {
  return written
    .split(/[\n,]/)
    .map((line) => line.trim())
    .filter(Boolean)
}
