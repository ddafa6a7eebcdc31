// The page and the form of one object of a kind, or of a new one.

import { useParams } from '@tanstack/react-router'
import { Fragment, type ReactNode } from 'react'
import { ApiError } from '@/api/client'
import { useTitle } from '@/session/crumb'
import { useGo } from '@/session/link'
import type { Role } from '@/session/roles'
import { Page } from './answer'
import type { Fields } from './draft'
import type { Edit } from './edit'
import { EditForm } from './form'
import { NotFound } from './not-found'
import { useObject, useObjectEdit, type Resource, type Stored } from './resource'
import { Loaded, Section } from './section'

interface RouteProps<T, F extends Fields> {
  resource: Resource<T, F>
  /** Title of the page of a new object. */
  newTitle?: string
  children: (stored: Stored<T> | null) => ReactNode
}

/** The object that the address names; none at `new`. */
export function ObjectRoute<T, F extends Fields>({ resource, newTitle, children }: RouteProps<T, F>) {
  const { id } = useParams({ strict: false }) as { id: string }
  const isNew = id === 'new'
  const query = useObject(resource, id, { enabled: !isNew })
  const { data, error } = query
  useTitle(isNew ? newTitle : data && resource.name(data.data))
  if (isNew) return <Fragment key="new">{children(null)}</Fragment>
  if (error instanceof ApiError && error.status === 404) return <NotFound />
  return (
    <Loaded query={query} lines={8}>
      {(object) => <Fragment key={id}>{children({ data: object, etag: data?.etag ?? null })}</Fragment>}
    </Loaded>
  )
}

interface FormProps<T, F extends Fields> {
  resource: Resource<T, F>
  stored: Stored<T>
  needs?: Role
  children: (edit: Edit<F>) => ReactNode
}

/** The form of an object that is stored. */
export function ObjectForm<T, F extends Fields>({ resource, stored, needs, children }: FormProps<T, F>) {
  const edit = useObjectEdit(resource, stored)
  return (
    <EditForm edit={edit} needs={needs}>
      {children(edit)}
    </EditForm>
  )
}

interface NewProps<T, F extends Fields> {
  resource: Resource<T, F>
  question: string
  answer: string
  title: string
  /** The list that it will be on. */
  back: string
  /** The page that is shown once it is stored; the list if not given. */
  next?: (saved: T) => string
  /** What it starts with, if it is not blank, and the key of that draft. */
  start?: F
  draft?: string
  children: (edit: Edit<F>) => ReactNode
}

/** The page of a new object. */
export function NewObject<T, F extends Fields>(props: NewProps<T, F>) {
  const { resource, question, answer, title, back, next, start, draft, children } = props
  const go = useGo()
  useTitle(title)
  const edit = useObjectEdit(resource, null, {
    key: draft,
    start,
    onSaved: (saved) => go(next?.(saved) ?? back),
  })
  return (
    <Page question={question} answer={answer}>
      <Section title={title}>
        <EditForm edit={edit} isNew onCancel={() => go(back)}>
          {children(edit)}
        </EditForm>
      </Section>
    </Page>
  )
}
