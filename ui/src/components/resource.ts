// A kind of object of the API: how its objects are read, saved and removed, what a form of one has, and where its draft
// is kept.

import type { UseQueryResult } from '@tanstack/react-query'
import { call, client, type Answer } from '@/api/client'
import { get, useGet, type Data, type GetPath, type ReadOptions } from '@/api/query'
import type { Fields, Secrets } from './draft'
import { useEdit, type Edit } from './edit'
import type { Deletion } from './object-page'

/** An object as it was read, with its entity tag. */
export type Stored<T> = Pick<Answer<T>, 'data' | 'etag'>

interface Naming<T> {
  /** Name of the kind, in the keys of drafts and in addresses. */
  key: string
  /** Name of the kind in `/references`, if others may refer to an object. */
  type?: string
  /** What the path of an object has; the field of the name of the parameter if not given. */
  id?: (object: T) => string
  /** Name of an object; its field `name` if not given. */
  name?: (object: T) => string
}

/** A kind whose forms have fields of the object. */
interface Picked<T, K extends keyof T> extends Naming<T> {
  /** What the form of a new object has; it names the fields. */
  blank: Pick<T, K>
  /** The body of a request, if it is not the fields. */
  body?: (fields: Pick<T, K>, stored: T | null) => unknown
  secrets?: Secrets<Pick<T, K>>
}

/** A kind whose forms have fields of their own, such as numbers that are typed as text. */
interface Formed<T, F extends Fields> extends Naming<T> {
  /** The fields of an object, or of a new one. */
  fields: (object: T | null) => F
  body: (fields: F, stored: T | null) => unknown
  secrets?: Secrets<F>
}

export interface Resource<T, F> {
  /** The path of one object, such as `/chains/{id}`; without a parameter there is one only, and no list. */
  path: GetPath
  key: string
  type?: string
  secrets?: Secrets<F>
  fields: (object: T | null) => F
  name: (object: T) => string
  idOf: (object: T) => string
  /** Key of the draft of an object, or of a new one. */
  draftKey: (id: string | null) => string
  read: (id: string) => Promise<Answer<T>>
  /** Saves over the version with this tag; creates if there is no stored object. */
  save: (fields: F, stored: T | null, etag: string | null) => Promise<Answer<T>>
  remove: (id: string, force?: boolean) => Promise<Answer<unknown>>
}

type Send = (path: string, init: unknown) => ReturnType<typeof client.GET>

export function resource<P extends GetPath, K extends keyof Data<P>>(
  path: P,
  options: Picked<Data<P>, K>,
): Resource<Data<P>, Pick<Data<P>, K>>
export function resource<P extends GetPath, F extends Fields>(
  path: P,
  options: Formed<Data<P>, F>,
): Resource<Data<P>, F>
export function resource(path: GetPath, given: unknown): unknown {
  const options = given as Picked<Fields, string> | Formed<Fields, Fields>
  const { key, type, body = (fields: Fields) => fields, secrets } = options
  const fields =
    'fields' in options ? options.fields : (object: Fields | null) => pick<Fields>(object, options.blank)
  const idOf = options.id ?? ((object) => String(object[parameterOf(path) ?? 'id']))
  // The path is one of many, so the compiler cannot join its parameters with the types of the client.
  const [put, post, remove] = [client.PUT, client.POST, client.DELETE] as unknown as [Send, Send, Send]
  const answer = (request: ReturnType<Send>) => call(request) as Promise<Answer<never>>
  return {
    path,
    key,
    type,
    secrets,
    fields,
    idOf,
    name: options.name ?? ((object) => String(object.name)),
    draftKey: (id) => `${key}.${id ?? 'new'}`,
    read: (id) => get(path, { path: at(path, id) as never }) as Promise<Answer<never>>,
    // What the body cannot be made of fails like a request.
    save: async (typed, stored, etag) =>
      stored
        ? answer(
            put(path, {
              params: {
                path: at(path, idOf(stored)),
                header: etag === null ? {} : { 'If-Match': etag },
              },
              body: body(typed, stored),
            }),
          )
        : answer(post(listOf(path), { body: body(typed, null) })),
    remove: (id, force = false) =>
      answer(remove(path, { params: { path: at(path, id), query: force ? { force: true } : {} } })),
  } satisfies Resource<Fields, Fields>
}

const parameterOf = (path: string) => /\{(\w+)\}/.exec(path)?.[1]
const listOf = (path: string) => path.slice(0, path.lastIndexOf('/')) as GetPath
function at(path: string, id: string): Record<string, string> {
  const parameter = parameterOf(path)
  return parameter === undefined ? {} : { [parameter]: id }
}

/** The fields of an object that `blank` names; those of `blank` if there is none. */
export function pick<B extends object>(object: B | null, blank: B): B {
  const names = Object.keys(blank) as (keyof B)[]
  return object ? (Object.fromEntries(names.map((name) => [name, object[name]])) as B) : blank
}

/** Reads an object, and goes on reading it. */
export function useObject<T, F>(
  { path }: Resource<T, F>,
  id: string,
  options?: ReadOptions,
): UseQueryResult<Answer<T>> {
  return useGet(path, { path: at(path, id) as never }, options) as never
}

/** Reads the list of the objects, and goes on reading it. */
export function useObjects<T, F>(
  { path }: Resource<T, F>,
  options?: ReadOptions,
): UseQueryResult<Answer<T[]>> {
  return useGet(listOf(path), {}, options) as never
}

interface EditOptions<T, F> {
  /** Key of the draft, if it is not that of the object. */
  key?: string
  /** What a new object starts with, if it is not blank. */
  start?: F
  said?: (saved: T) => string
  onSaved?: (saved: T) => void
}

/** Edits an object, or a new one if none is stored. */
export function useObjectEdit<T, F extends Fields>(
  resource: Resource<T, F>,
  stored: Stored<T> | null,
  { key, start, said, onSaved }: EditOptions<T, F> = {},
): Edit<F> {
  const { fields, read, save, secrets } = resource
  const object = stored?.data ?? null
  const id = object ? resource.idOf(object) : null
  return useEdit<F, T>({
    key: key ?? resource.draftKey(id),
    version: { value: object ? fields(object) : (start ?? fields(null)), etag: stored?.etag ?? null },
    secrets,
    save: (value, etag) => save(value, object, etag),
    read: async () => {
      const now = await read(id ?? '')
      return { value: fields(now.data), etag: now.etag }
    },
    said,
    onSaved,
  })
}

/** How an object is deleted, with its name, its references and its draft; null if there is none. */
export function deletionOf<T, F>(
  resource: Resource<T, F>,
  object: T | null | undefined,
  {
    title,
    ...words
  }: Pick<Deletion, 'consequence' | 'back'> &
    Partial<Omit<Deletion, 'title'>> & { title: (name: string) => string },
): Deletion | null {
  if (!object) return null
  const id = resource.idOf(object)
  const name = resource.name(object)
  return {
    name,
    title: title(name),
    subject: resource.type ? { type: resource.type, id } : undefined,
    remove: (force) => resource.remove(id, force),
    draft: resource.draftKey(id),
    ...words,
  }
}
