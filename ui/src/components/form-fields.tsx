// The fields of a form by a list: each names what it edits, and its label.

import type { ComponentPropsWithoutRef, ReactNode } from 'react'
import type { ApiError } from '@/api/client'
import { useText } from '@/text'
import { useLines } from './draft-lines'
import type { Draft, Fields } from './draft'
import { Check, Select, TextArea, TextField } from './fields'
import { PickOne } from './picker'

/** A text is a label, or a label with a hint. */
export type FieldTexts<T> = Record<keyof T & string, string | readonly [label: string, hint: string]>

/** A choice is a list of the browser; a select finds by parts of the name if there are many options. */
type Kind = 'text' | 'number' | 'check' | 'select' | 'choice' | 'area' | 'lines' | 'secret'

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
  /** The text of the catalogue if not given. */
  label?: string
  /** Path of the field in the errors of the daemon; the name of the field if not given. */
  path?: string
  options?: readonly (readonly [value: string, label: string])[]
  /** An empty field is null. */
  nullable?: boolean
  required?: boolean
  min?: number
  max?: number
  wide?: boolean
  disabled?: boolean
  /** Draws the field in another way. */
  render?: (field: RenderedField) => ReactNode
  /** A secret is stored: it is kept if the field stays empty, and a check box removes it, which makes it null. */
  stored?: boolean
  /** The options of a choice are still being read. */
  loading?: boolean
  rows?: number
  /** A hint that depends on the data; it replaces that of the catalogue. */
  hint?: ReactNode
  /** More attributes of a field of text. */
  input?: ComponentPropsWithoutRef<'input'>
}

type Specs<T> = (FieldSpec<T> | false | null | undefined)[]

/** What fields read and write: a draft, or a part of one. */
type Source<T extends Fields> = Pick<Draft<T>, 'value' | 'set'>

interface ListProps<T extends Fields> {
  draft: Source<T>
  fields: Specs<T>
  texts?: FieldTexts<T>
  /** What is wrong with a field. */
  error: (path: string) => string | undefined
}

/** The fields one after the other, in the grid that is around them. */
export function FieldList<T extends Fields>({ fields, ...rest }: ListProps<T>) {
  return fields.map((spec) =>
    spec ? (
      spec.wide ? (
        <div key={spec.field} className="wide">
          <OneField spec={spec} {...rest} />
        </div>
      ) : (
        <OneField key={spec.field} spec={spec} {...rest} />
      )
    ) : null,
  )
}

interface FieldsProps<T extends Fields> extends Omit<ListProps<T>, 'error'> {
  error: ApiError | null
}

/** The fields of a form, in two columns where there is room. */
export function FormFields<T extends Fields>({ fields, error, ...rest }: FieldsProps<T>) {
  return (
    <div className="form form--2 form--fields">
      {fields.map((spec) =>
        spec ? (
          <div key={spec.field} className={spec.wide || spec.kind === 'area' ? 'wide' : undefined}>
            <OneField spec={spec} error={(path) => error?.of(path)} {...rest} />
          </div>
        ) : null,
      )}
    </div>
  )
}

/** The fields of an object within a draft. */
export function partOf<T extends Fields, K extends keyof T & string>(
  draft: Source<T>,
  field: K,
): Source<NonNullable<T[K]> & Fields> {
  const value = draft.value[field] as NonNullable<T[K]> & Fields
  return { value, set: (name, next) => draft.set(field, { ...value, [name]: next }) }
}

interface OneFieldProps<T extends Fields> extends Omit<ListProps<T>, 'fields'> {
  spec: FieldSpec<T>
}

function OneField<T extends Fields>({ draft, spec, texts, error }: OneFieldProps<T>) {
  const named = texts?.[spec.field] ?? ''
  const label = spec.label ?? (typeof named === 'string' ? named : named[0])
  const hint = spec.hint ?? (typeof named === 'string' ? undefined : named[1])
  const problem = error(spec.path ?? spec.field)
  const value = draft.value[spec.field]
  const set = (next: unknown) => draft.set(spec.field, next as T[keyof T & string])
  if (spec.kind === 'check')
    return (
      <>
        <Check label={label} hint={hint} checked={value === true} disabled={spec.disabled} onChange={set} />
        {problem ? <p className="formrow__error">{problem}</p> : null}
      </>
    )
  if (spec.kind === 'secret' && spec.stored)
    return <StoredSecret spec={spec} field={{ label, hint, error: problem }} value={value} onChange={set} />
  const common = { label, hint, error: problem }
  if (spec.kind === 'lines') return <Lines {...common} rows={spec.rows} value={value} onChange={set} />
  const typed = (next: string) => set(valueOf(next, value, spec))
  return <TypedField spec={spec} field={{ ...common, value: String(value ?? ''), onChange: typed }} />
}

interface StoredSecretProps<T extends Fields> {
  spec: FieldSpec<T>
  field: Pick<RenderedField, 'label' | 'hint' | 'error'>
  value: unknown
  onChange: (value: string | null) => void
}

function StoredSecret<T extends Fields>({ spec, field, value, onChange }: StoredSecretProps<T>) {
  const words = useText().common
  const isRemoved = value === null
  return (
    <>
      <TypedField
        spec={{ ...spec, disabled: isRemoved || spec.disabled }}
        field={{ ...field, hint: words.secretKept, value: String(value ?? ''), onChange }}
      />
      <Check
        label={words.removeSecret(field.label)}
        checked={isRemoved}
        disabled={spec.disabled}
        onChange={(removes) => onChange(removes ? null : '')}
      />
    </>
  )
}

/** The value of what was typed: a number for a number, null for an empty field that may be null. */
function valueOf(
  typed: string,
  before: unknown,
  { kind, nullable }: Pick<FieldSpec<Fields>, 'kind' | 'nullable'>,
) {
  if (typed === '' && nullable) return null
  return kind === 'number' && typeof before !== 'string' ? Number(typed) : typed
}

const TYPES: Partial<Record<Kind, string>> = { number: 'number', secret: 'password' }

function TypedField<T extends Fields>({ spec, field }: { spec: FieldSpec<T>; field: RenderedField }) {
  const { kind = 'text', options = [], disabled, required, min, max, input } = spec
  if (spec.render) return spec.render(field)
  if (kind === 'select')
    return <PickOne {...field} options={options} disabled={disabled} loading={spec.loading} />
  if (kind === 'choice') return <Select {...field} options={options} disabled={disabled} />
  if (kind === 'area') return <TextArea {...field} rows={spec.rows ?? 4} spellCheck={false} />
  return (
    <TextField
      type={TYPES[kind] ?? 'text'}
      autoComplete={kind === 'secret' ? 'new-password' : 'off'}
      spellCheck={false}
      {...input}
      {...field}
      {...{ required, disabled, min, max }}
    />
  )
}

interface LinesProps {
  label: string
  hint?: ReactNode
  error?: string
  rows?: number
  value: unknown
  onChange: (value: string[]) => void
}

/** A list, one thing on each line. */
function Lines({ value, onChange, rows = 3, ...rest }: LinesProps) {
  const lines = useLines(value as string[], onChange)
  return <TextArea {...rest} rows={rows} value={lines.value} onChange={lines.onChange} />
}
