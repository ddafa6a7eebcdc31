// List of objects that can be added, changed, switched and deleted. The address names the open form, and the device that a new object is
// for. A change that another user made meanwhile is merged field by field.

import { useEffect, useMemo, useState, type ReactNode } from 'react'
import { useQuery, type UseQueryResult } from '@tanstack/react-query'
import { ApiError, type Answer } from '@/api/client'
import { useChange } from '@/api/query'
import { useSearchParams } from '@/session/search-params'
import { say, sayError } from '@/session/toasts'
import { Button } from '@/components/button'
import { Confirm } from '@/components/confirm'
import { DataTable, type ColumnDef } from '@/components/data-table'
import { Dialog } from '@/components/dialog'
import type { Draft } from '@/components/draft'
import { useEdit } from '@/components/edit'
import { FormErrors } from '@/components/form'
import { Actions, type Action } from '@/components/menu'
import { Empty, Failure, Loaded, Section, Skeleton } from '@/components/section'
import { useText } from '@/text'

type Fields = Record<string, unknown>

/** How the objects of a kind are read and changed. */
export interface Resource<T extends { id: string }, F extends Fields> {
  /** Name of the kind in the API, for references. */
  type: string
  /** Name in the address. */
  key: string
  blank: F
  name: (row: T) => string
  /** The fields of a form from an object. */
  fields: (row: T) => F
  get: (id: string) => Promise<Answer<T>>
  create: (fields: F) => Promise<Answer<unknown>>
  update: (id: string, fields: F, etag: string | null) => Promise<Answer<unknown>>
  remove: (id: string) => Promise<Answer<unknown>>
  secrets?: (keyof F)[]
}

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

interface Props<T extends { id: string }, F extends Fields> {
  resource: Resource<T, F>
  words: Words
  query: UseQueryResult<Answer<T[]>>
  // A column of any type of cell.
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  columns: ColumnDef<T, any>[]
  form: (props: FormProps<F>) => ReactNode
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

export function ResourceSection<T extends { id: string }, F extends Fields>(props: Props<T, F>) {
  const { resource, words, query, columns, form, toggles, fixed, locked, filter, extra, primary } = props
  const text = useText()
  const [search, change] = useSearchParams()
  const [deleting, setDeleting] = useState<T | null>(null)
  const [kind, id] = (search.edit ?? '').split(':')
  const editing = kind === resource.key ? (id ?? '') : null
  const open = (which: string) => change({ edit: `${resource.key}:${which}` })
  const close = () => change({ edit: undefined, for: undefined })
  const toggle = useChange(async (row: T) => {
    const { data, etag } = await resource.get(row.id)
    const fields = resource.fields(data)
    return resource.update(row.id, { ...fields, enabled: fields.enabled !== true }, etag)
  })
  const remove = useChange((row: T) => resource.remove(row.id))
  const actions = (row: T): Action[] => [
    {
      id: 'edit',
      label: text.common.edit,
      needs: 'operator',
      disabled: locked?.(row) ?? false,
      run: () => open(row.id),
    },
    ...(toggles
      ? [
          {
            id: 'toggle',
            label: resource.fields(row).enabled === true ? text.dns.editor.disable : text.dns.editor.enable,
            needs: 'operator' as const,
            run: () => toggle.mutate(row, { onError: sayError }),
          },
        ]
      : []),
    {
      id: 'delete',
      label: text.common.delete,
      needs: 'operator',
      disabled: (fixed?.(row) ?? false) || (locked?.(row) ?? false),
      run: () => setDeleting(row),
    },
  ]
  const all: Props<T, F>['columns'] = [
    ...columns,
    {
      id: 'actions',
      header: '',
      enableSorting: false,
      meta: { numeric: true, label: '' },
      cell: ({ row }) => (
        <Actions
          label={text.dns.editor.actionsFor(resource.name(row.original))}
          actions={actions(row.original)}
        />
      ),
    },
  ]
  const add = (
    <Button
      size="small"
      kind={primary ? 'primary' : 'plain'}
      icon="plus"
      needs="operator"
      onClick={() => open('new')}
    >
      {text.common.add}
    </Button>
  )
  return (
    <Section title={words.title} hint={words.hint} actions={add}>
      {extra}
      <Loaded
        query={query}
        isEmpty={(rows) => rows.length === 0}
        empty={<Empty command={words.command}>{words.empty}</Empty>}
      >
        {(rows) => (
          <DataTable
            label={words.title}
            className="tbl--menu"
            rows={filter ? rows.filter(filter) : rows}
            columns={all}
            id={(row) => row.id}
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
          onClose={close}
        />
      ) : null}
      <Confirm
        open={deleting !== null}
        onClose={() => setDeleting(null)}
        title={text.dns.editor.deleteTitle(deleting ? resource.name(deleting) : '')}
        consequence={deleting ? words.consequence(resource.name(deleting)) : ''}
        name={deleting ? resource.name(deleting) : ''}
        subject={deleting ? { type: resource.type, id: deleting.id } : undefined}
        action={text.common.delete}
        busy={remove.isPending}
        error={remove.error}
        onConfirm={() => {
          if (!deleting) return
          remove.mutate(deleting, {
            onSuccess: ({ warnings }) => {
              say(text.common.deleted(resource.name(deleting)), warnings)
              setDeleting(null)
            },
          })
        }}
      />
    </Section>
  )
}

interface EditProps<T extends { id: string }, F extends Fields> {
  resource: Resource<T, F>
  words: Words
  id: string
  form: (props: FormProps<F>) => ReactNode
  onClose: () => void
}

function EditDialog<T extends { id: string }, F extends Fields>(props: EditProps<T, F>) {
  const { resource, words, id, onClose } = props
  const isNew = id === 'new'
  const query = useQuery({
    queryKey: ['edit', resource.key, id],
    queryFn: () => resource.get(id),
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
        <Form {...props} base={resource.blank} etag={null} />
      ) : base ? (
        <Form {...props} base={resource.fields(base.data)} etag={base.etag} />
      ) : query.error ? (
        <Failure error={query.error} retry={() => void query.refetch()} />
      ) : (
        <Skeleton lines={4} />
      )}
    </Dialog>
  )
}

function Form<T extends { id: string }, F extends Fields>({
  resource,
  id,
  form,
  onClose,
  base,
  etag,
}: EditProps<T, F> & { base: F; etag: string | null }) {
  const text = useText()
  const edit = useEdit<F>({
    key: `dns.${resource.key}.${id}`,
    version: { value: base, etag },
    secrets: resource.secrets,
    save: (fields, tag) => (id === 'new' ? resource.create(fields) : resource.update(id, fields, tag)),
    read: async () => {
      const now = await resource.get(id)
      return { value: resource.fields(now.data), etag: now.etag }
    },
    onSaved: onClose,
  })
  const { draft, problems } = edit
  useFocusFirstError(problems)
  return (
    <>
      <form
        className="form form--2"
        onSubmit={(event) => {
          event.preventDefault()
          edit.submit()
        }}
      >
        {edit.error ? (
          <div className="wide">
            <FormErrors edit={edit} />
          </div>
        ) : null}
        {form({ draft, error: (path) => edit.of(path) })}
        <div className="btns wide">
          <Button kind="primary" submit needs="operator" busy={edit.busy}>
            {id === 'new' ? text.common.create : text.common.save}
          </Button>
          <Button
            kind="ghost"
            onClick={() => {
              edit.forget()
              onClose()
            }}
          >
            {text.common.cancel}
          </Button>
          {draft.dirty ? <span className="dim sm">{text.dns.editor.unsaved}</span> : null}
        </div>
      </form>
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

/** Lines of a text area as a list, and back. */
export function useLines(value: readonly string[], set: (value: string[]) => void) {
  const joined = useMemo(() => value.join('\n'), [value])
  const [typed, setTyped] = useState(joined)
  return {
    value: linesOf(typed).join('\n') === joined ? typed : joined,
    onChange: (next: string) => {
      setTyped(next)
      set(linesOf(next))
    },
  }
}

export function linesOf(text: string): string[] {
  return text
    .split(/[\n,]+/)
    .map((line) => line.trim())
    .filter((line) => line !== '')
}
