// The draft of a form: what was typed survives a reload of the page, except secrets, and a change that was made
// meanwhile is merged field by field.

import { useEffect, useState } from 'react'

type Fields = Record<string, unknown>

export interface Draft<T extends Fields> {
  value: T
  set: <K extends keyof T>(field: K, value: T[K]) => void
  replace: (value: T) => void
  /** The values differ from those that were read. */
  dirty: boolean
  discard: () => void
}

/**
 * Keeps a draft under a key. `base` is the state that was read; secret fields are never stored.
 */
export function useDraft<T extends Fields>(
  key: string,
  base: T,
  secrets: readonly (keyof T)[] = [],
): Draft<T> {
  const stored = `gateway.draft.${key}`
  const [value, setValue] = useState<T>(() => ({ ...base, ...read(stored) }) as T)
  const dirty = !same(value, base)
  useEffect(() => {
    if (!dirty) {
      sessionStorage.removeItem(stored)
      return
    }
    const kept = Object.fromEntries(Object.entries(value).filter(([field]) => !secrets.includes(field)))
    sessionStorage.setItem(stored, JSON.stringify(kept))
  }, [stored, dirty, value, secrets])
  return {
    value,
    set: (field, next) => setValue((before) => ({ ...before, [field]: next })),
    replace: setValue,
    dirty,
    discard: () => {
      sessionStorage.removeItem(stored)
      setValue(base)
    },
  }
}

function read(key: string): Fields {
  try {
    return JSON.parse(sessionStorage.getItem(key) ?? '{}') as Fields
  } catch {
    return {}
  }
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
