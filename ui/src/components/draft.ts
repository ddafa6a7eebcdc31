// The draft of a form: what was typed survives a reload of the page, except secrets, and a change that was made
// meanwhile is merged field by field.

import { useEffect, useState } from 'react'

export type Fields = Record<string, unknown>

export interface Draft<T extends Fields> {
  value: T
  set: <K extends keyof T>(field: K, value: T[K]) => void
  replace: (value: T) => void
  /** The values differ from those that were read. */
  dirty: boolean
  discard: () => void
}

/** Fields of a form that is not kept, such as one in a dialog. */
export function useFields<T extends Fields>(start: T): Pick<Draft<T>, 'value' | 'set'> {
  const [value, setValue] = useState(start)
  return { value, set: (field, next) => setValue((before) => ({ ...before, [field]: next })) }
}

/** A version of an object: its fields, and its entity tag. */
export interface Version<T> {
  value: T
  etag: string | null
}

interface Stored {
  value: Fields
  /** What the draft was written over, if it is a version of an object. */
  base?: Version<Fields>
}

/** Names of the fields that are never stored, which may depend on what is written. */
export type Secrets<T> = readonly (keyof T)[] | ((value: T) => readonly (keyof T)[])

/**
 * Keeps a draft under a key. `base` is the state that was read; secret fields are never stored. With an entity tag the
 * version that the draft was written over is stored too.
 */
export function useDraft<T extends Fields>(
  key: string,
  base: T,
  secrets: Secrets<T> = [],
  etag?: string | null,
): Draft<T> {
  const [value, setValue] = useState<T>(() => ({ ...base, ...readDraft(key)?.value }) as T)
  const dirty = !same(value, base)
  const hidden = (typeof secrets === 'function' ? secrets(value) : secrets).join(' ')
  const over = etag === undefined ? undefined : base
  useEffect(() => {
    if (!dirty) {
      dropDraft(key)
      return
    }
    const names = hidden.split(' ')
    const stored: Stored = { value: without(value, names) }
    if (over && etag !== undefined) stored.base = { value: without(over, names), etag }
    sessionStorage.setItem(addressOf(key), JSON.stringify(stored))
  }, [key, dirty, value, over, etag, hidden])
  return {
    value,
    set: (field, next) => setValue((before) => ({ ...before, [field]: next })),
    replace: setValue,
    dirty,
    discard: () => {
      dropDraft(key)
      setValue(base)
    },
  }
}

const addressOf = (key: string) => `gateway.draft.${key}`

export function readDraft(key: string): Stored | null {
  try {
    const stored = JSON.parse(sessionStorage.getItem(addressOf(key)) ?? 'null') as Stored | null
    return typeof stored?.value === 'object' ? stored : null
  } catch {
    return null
  }
}

export function dropDraft(key: string) {
  sessionStorage.removeItem(addressOf(key))
}

function without(fields: Fields, names: readonly string[]): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([field]) => !names.includes(field)))
}

export function same(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other)
}

/** A field that both changed since the base, to different values. */
export interface Clash {
  field: string
  base: unknown
  yours: unknown
  theirs: unknown
}

/** Merges two changes of one base. A field that only one changed is taken from it; the others are clashes. */
export function merge<T extends Fields>(base: T, yours: T, theirs: T): { merged: T; clashes: Clash[] } {
  const merged: Fields = { ...theirs }
  const clashes: Clash[] = []
  for (const field of new Set([...Object.keys(base), ...Object.keys(yours), ...Object.keys(theirs)])) {
    const changedByMe = !same(base[field], yours[field])
    const changedByThem = !same(base[field], theirs[field])
    if (!changedByMe) continue
    merged[field] = yours[field]
    if (changedByThem && !same(yours[field], theirs[field]))
      clashes.push({ field, base: base[field], yours: yours[field], theirs: theirs[field] })
  }
  return { merged: merged as T, clashes }
}
