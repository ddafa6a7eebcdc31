// The list of the objects of a kind, which can be added, changed, switched and deleted. The address names the open form,
// and the device that a new object is for.

import { useEffect, useState, type ReactNode } from 'react'
import { useQuery } from '@tanstack/react-query'
import { ApiError, type Answer } from '@/api/client'
import { useChange } from '@/api/query'
import { useSearchParams } from '@/session/search-params'
import { sayError } from '@/session/toasts'
import { useFormAction } from '@/components/action'
import { useText } from '@/text'
import { ActionForm } from './action-form'
import { Button } from './button'
import { Confirm } from './confirm'
import { DataTable } from './data-table'
import { Dialog } from './dialog'
import type { Draft, Fields } from './draft'
import { Actions, type Action } from './menu'
import { useObjectEdit, useObjects, type Resource, type Stored } from './resource'
import { Empty, Failure, Loaded, Section, Skeleton } from './section'
import type { Column } from './table'

export interface FormProps<F extends Fields> {
  draft: Draft<F>
  /** What is wrong with a field. */
  error: (path: string) => string | undefined
}

interface Words {
  title: string
  hint?: string
  empty: string
  addTitle: string
  editTitle: (name: string) => string
  /** What follows from a deletion. */
  consequence: (name: string) => string
  command?: string
}

interface Props<T, F extends Fields> {
  resource: Resource<T, F>
  words: Words
  columns: readonly Column<T>[]
  form: (props: FormProps<F>) => ReactNode
  /** What a new object starts with, if it is not blank. */
  start?: F
  /** The field that switches an object on and off. */
  toggles?: boolean
  /** An object that cannot be deleted. */
  fixed?: (row: T) => boolean
  /** An object that cannot be changed. */
  locked?: (row: T) => boolean
  filter?: (row: T) => boolean
  extra?: ReactNode
  primary?: boolean
}

export function ObjectList<T, F extends Fields>(props: Props<T, F>) {
  const { resource, words, columns, form, start, filter, extra, primary } = props
  const query = useObjects(resource)
  const text = useText()
  const [search, change] = useSearchParams()
  const [deleting, setDeleting] = useState<T | null>(null)
  const [kind, id] = (search.edit ?? '').split(':')
  const editing = kind === resource.key ? (id ?? '') : null
  const open = (which: string) => change({ edit: `${resource.key}:${which}` })
  const all: Column<T>[] = [
    ...columns,
    {
      numeric: true,
      cell: (row) => (
        <RowActions
          {...props}
          row={row}
          onEdit={() => open(resource.idOf(row))}
          onDelete={() => setDeleting(row)}
        />
      ),
    },
  ]
  const kindOfAdd = primary ? 'primary' : 'plain'
  const add = (
    <Button size="small" kind={kindOfAdd} icon="plus" needs="operator" onClick={() => open('new')}>
      {text.common.add}
    </Button>
  )
  return (
    <Section title={words.title} hint={words.hint} actions={add}>
      {extra}
      <Loaded query={query} empty={<Empty command={words.command}>{words.empty}</Empty>}>
        {(rows) => (
          <DataTable
            label={words.title}
            className="tbl--menu"
            rows={filter ? rows.filter(filter) : rows}
            columns={all}
            id={resource.idOf}
          />
        )}
      </Loaded>
      {editing !== null ? (
        <EditDialog
          key={editing}
          resource={resource}
          words={words}
          id={editing}
          form={form}
          start={start}
          onClose={() => change({ edit: undefined, for: undefined })}
        />
      ) : null}
      <DeleteDialog resource={resource} words={words} object={deleting} onClose={() => setDeleting(null)} />
    </Section>
  )
}

interface RowProps<T, F extends Fields> extends Pick<
  Props<T, F>,
  'resource' | 'toggles' | 'fixed' | 'locked'
> {
  row: T
  onEdit: () => void
  onDelete: () => void
}

function RowActions<T, F extends Fields>(props: RowProps<T, F>) {
  const { resource, row, toggles, fixed, locked, onEdit, onDelete } = props
  const text = useText()
  const toggle = useChange(async () => {
    const { data, etag } = await resource.read(resource.idOf(row))
    const fields = resource.fields(data)
    return resource.save({ ...fields, enabled: fields.enabled !== true }, data, etag)
  })
  const isLocked = locked?.(row) ?? false
  const actions: Action[] = [
    { id: 'edit', label: text.common.edit, needs: 'operator', disabled: isLocked, run: onEdit },
  ]
  if (toggles)
    actions.push({
      id: 'toggle',
      label: resource.fields(row).enabled === true ? text.dns.editor.disable : text.dns.editor.enable,
      needs: 'operator',
      run: () => toggle.mutate(undefined, { onError: sayError }),
    })
  actions.push({
    id: 'delete',
    label: text.common.delete,
    needs: 'operator',
    disabled: (fixed?.(row) ?? false) || isLocked,
    run: onDelete,
  })
  return <Actions label={text.dns.editor.actionsFor(resource.name(row))} actions={actions} />
}

interface DeleteProps<T, F extends Fields> extends Pick<Props<T, F>, 'resource' | 'words'> {
  /** The object that is asked about. */
  object: T | null
  onClose: () => void
}

function DeleteDialog<T, F extends Fields>({ resource, words, object, onClose }: DeleteProps<T, F>) {
  const text = useText()
  const name = object ? resource.name(object) : ''
  const remove = useFormAction(
    (row: T) => resource.remove(resource.idOf(row)),
    () => {
      onClose()
      return text.common.deleted(name)
    },
  )
  return (
    <Confirm
      open={object !== null}
      onClose={onClose}
      title={text.dns.editor.deleteTitle(name)}
      consequence={object ? words.consequence(name) : ''}
      name={name}
      subject={object && resource.type ? { type: resource.type, id: resource.idOf(object) } : undefined}
      action={text.common.delete}
      busy={remove.busy}
      error={remove.error}
      onConfirm={() => {
        if (!object) return
        remove.run(object)
      }}
    />
  )
}

interface EditProps<T, F extends Fields> {
  resource: Resource<T, F>
  words: Words
  id: string
  form: (props: FormProps<F>) => ReactNode
  start?: F
  onClose: () => void
}

function EditDialog<T, F extends Fields>(props: EditProps<T, F>) {
  const { resource, words, id, onClose } = props
  const isNew = id === 'new'
  const query = useQuery({
    queryKey: ['edit', resource.key, id],
    queryFn: () => resource.read(id),
    enabled: !isNew,
    // A form keeps what it was opened with.
    staleTime: Infinity,
    gcTime: 0,
    refetchOnWindowFocus: false,
  })
  // The first answer is the base of the draft, whatever is read later.
  const [base, setBase] = useState<Answer<T> | null>(null)
  if (base === null && query.data) setBase(query.data)
  const title = isNew ? words.addTitle : base ? words.editTitle(resource.name(base.data)) : words.title
  return (
    <Dialog open onClose={onClose} title={title} wide>
      {isNew ? (
        <Form {...props} stored={null} />
      ) : base ? (
        <Form {...props} stored={base} />
      ) : query.error ? (
        <Failure error={query.error} retry={() => void query.refetch()} />
      ) : (
        <Skeleton lines={4} />
      )}
    </Dialog>
  )
}

function Form<T, F extends Fields>(props: EditProps<T, F> & { stored: Stored<T> | null }) {
  const { resource, id, form, start, onClose, stored } = props
  const text = useText()
  const edit = useObjectEdit(resource, stored, {
    key: `dns.${resource.key}.${id}`,
    start,
    onSaved: onClose,
  })
  const { draft, problems } = edit
  useFocusFirstError(problems)
  return (
    <>
      <ActionForm
        of={edit}
        className="form form--2"
        onSubmit={edit.submit}
        word={id === 'new' ? text.common.create : text.common.save}
        needs="operator"
        onCancel={() => {
          edit.forget()
          onClose()
        }}
        buttons={draft.dirty ? <span className="dim sm">{text.dns.editor.unsaved}</span> : null}
      >
        {form({ draft, error: (path) => edit.of(path) })}
      </ActionForm>
      {edit.dialog}
    </>
  )
}

/** After a save failed, the first field that is wrong has the focus. */
function useFocusFirstError(error: ApiError | null) {
  useEffect(() => {
    if (error && error.fields.length > 0)
      document.querySelector<HTMLElement>('dialog[open] [aria-invalid="true"]')?.focus()
  }, [error])
}
