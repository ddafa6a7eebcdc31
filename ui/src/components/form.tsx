// Forms of an object: its fields by a list, a draft, the errors of the daemon, and the merge of two changes.

import { useState, type FormEvent, type ReactNode } from 'react'
import { ApiError, type Answer } from '@/api/client'
import { useChange } from '@/api/query'
import { say } from '@/app/toasts'
import type { Role } from '@/app/roles'
import { useText } from '@/text'
import { Button } from './button'
import { merge, useDraft, type Clash, type Draft } from './draft'
import { Check, ErrorSummary, Select, TextArea, TextField } from './fields'
import { MergeDialog } from './merge-dialog'
import { Failure } from './section'

/** The values of a form as they are typed: numbers and lists are text. */
export type Values = Record<string, string | boolean>

/** A text is a label, or a label with a hint. */
export type FieldTexts<T> = Record<keyof T & string, string | readonly [label: string, hint: string]>

type Kind = 'text' | 'number' | 'check' | 'select' | 'area' | 'secret'

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
  if (spec.kind === 'select')
    return <Select {...common} options={spec.options ?? []} disabled={spec.disabled} />
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

interface Read<T> {
  value: T
  etag: string | null
}

interface EditOptions<T extends Values> {
  /** Key of the draft. */
  key: string
  /** What was read when the form opened. */
  initial: Read<T>
  secrets?: readonly (keyof T)[]
  save: (value: T, etag: string | null) => Promise<Answer<unknown>>
  /** Reads the object again, after another user changed it. */
  read?: () => Promise<Read<T>>
  onSaved: (answer: Answer<unknown>) => void
}

export interface Edit<T extends Values> {
  draft: Draft<T>
  error: Error | null
  problems: ApiError | null
  busy: boolean
  submit: () => void
  dialog: ReactNode
}

interface Conflict<T> {
  merged: T
  clashes: Clash[]
  theirs: Read<T>
}

/** A form that is saved as a whole. If the object was changed meanwhile, both changes are merged. */
export function useEdit<T extends Values>(options: EditOptions<T>): Edit<T> {
  const text = useText()
  const [base, setBase] = useState(options.initial)
  const [conflict, setConflict] = useState<Conflict<T> | null>(null)
  const draft = useDraft(options.key, base.value, options.secrets)
  const change = useChange(({ value, etag }: Read<T>) => options.save(value, etag))
  const send = (value: T, etag: string | null) =>
    change.mutate(
      { value, etag },
      {
        onSuccess: (answer) => {
          draft.discard()
          say(text.common.saved, answer.warnings)
          options.onSaved(answer)
          // A form that stays open goes on from what is stored now.
          void options.read?.().then((now) => {
            setBase(now)
            draft.replace(now.value)
          })
        },
        onError: (error) => {
          if (!(error instanceof ApiError) || error.status !== 412 || !options.read) return
          void options.read().then((theirs) => {
            setConflict({ ...merge(base.value, value, theirs.value), theirs })
          })
        },
      },
    )
  const error = change.error
  const mergeWith = ({ merged, theirs }: Conflict<T>, fields: string[]) => {
    const value = { ...merged }
    for (const field of fields) value[field as keyof T] = theirs.value[field as keyof T]
    setConflict(null)
    setBase(theirs)
    draft.replace(value)
    send(value, theirs.etag)
  }
  return {
    draft,
    error: error instanceof ApiError && error.status === 412 && options.read ? null : error,
    problems: error instanceof ApiError ? error : null,
    busy: change.isPending,
    submit: () => send(draft.value, base.etag),
    dialog: conflict ? (
      <MergeDialog
        clashes={conflict.clashes}
        onClose={() => setConflict(null)}
        onMerge={(fields) => mergeWith(conflict, fields)}
      />
    ) : null,
  }
}

interface FormProps<T extends Values> {
  edit: Edit<T>
  /** The word on the button that saves. */
  action?: string
  needs?: Role
  onCancel?: () => void
  /** The form may be saved without a change, such as that of a new object. */
  isNew?: boolean
  children: ReactNode
}

/** The frame of a form: errors at the top, the fields, and the buttons. Ctrl+Enter saves. */
export function EditForm<T extends Values>({
  edit,
  action,
  needs = 'operator',
  onCancel,
  isNew = false,
  children,
}: FormProps<T>) {
  const text = useText()
  const { draft, error, problems } = edit
  const submit = (event: FormEvent) => {
    event.preventDefault()
    edit.submit()
  }
  return (
    // The keys are those of the fields inside it.
    // eslint-disable-next-line jsx-a11y/no-noninteractive-element-interactions
    <form
      className="form form--page"
      onSubmit={submit}
      onKeyDown={(event) => {
        if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) event.currentTarget.requestSubmit()
      }}
    >
      {problems && error && problems.fields.length > 0 ? <ErrorSummary error={problems} /> : null}
      {error && (!problems || problems.fields.length === 0) ? <Failure error={error} /> : null}
      {children}
      <div className="btns">
        <Button kind="primary" submit needs={needs} busy={edit.busy} disabled={!isNew && !draft.dirty}>
          {action ?? text.common.save}
        </Button>
        {onCancel ? (
          <Button
            kind="ghost"
            onClick={() => {
              draft.discard()
              onCancel()
            }}
          >
            {text.common.cancel}
          </Button>
        ) : draft.dirty ? (
          <Button kind="ghost" onClick={draft.discard}>
            {text.common.cancel}
          </Button>
        ) : null}
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
