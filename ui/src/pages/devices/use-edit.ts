// Editing one object of the API: the draft, the version that it is based on, and the merge with a change that another user
// saved meanwhile.

import { useState } from 'react'
import { useQueryClient } from '@tanstack/react-query'
import { ApiError, type Answer } from '@/api/client'
import { merge, useDraft, type Clash, type Draft } from '@/components/draft'

type Fields = Record<string, unknown>

interface Version<T> {
  value: T
  etag: string | null
}

interface Options<T extends Fields> {
  key: string
  base: Version<T>
  /** Saves a draft over the version with this tag. */
  save: (value: T, etag: string | null) => Promise<Answer<unknown>>
  /** Reads the object again. */
  reread: () => Promise<Version<T>>
  onSaved: (answer: Answer<unknown>) => void
}

export interface Edit<T extends Fields> {
  draft: Draft<T>
  error: ApiError | Error | null
  busy: boolean
  submit: () => void
  /** Fields that both changed, while the choice between them is open. */
  clashes: Clash[] | null
  accept: (theirs: string[]) => void
  cancelMerge: () => void
  /** What is wrong with a field. */
  of: (path: string) => string | undefined
}

export function useEdit<T extends Fields>({ key, base: first, save, reread, onSaved }: Options<T>): Edit<T> {
  const queries = useQueryClient()
  const [base, setBase] = useState(first)
  const draft = useDraft(key, base.value)
  const [error, setError] = useState<Error | null>(null)
  const [busy, setBusy] = useState(false)
  const [merging, setMerging] = useState<{ theirs: Version<T>; merged: T; clashes: Clash[] } | null>(null)

  const send = async (value: T, etag: string | null) => {
    setBusy(true)
    setError(null)
    try {
      const answer = await save(value, etag)
      sessionStorage.removeItem(`gateway.draft.${key}`)
      setBase({ value, etag: answer.etag })
      draft.replace(value)
      await queries.invalidateQueries()
      onSaved(answer)
    } catch (failure) {
      if (failure instanceof ApiError && failure.status === 412) {
        const theirs = await reread().catch(() => null)
        if (theirs) setMerging({ theirs, ...merge(base.value, value, theirs.value) })
        else setError(failure)
      } else setError(failure as Error)
    } finally {
      setBusy(false)
    }
  }
  return {
    draft,
    error,
    busy,
    submit: () => void send(draft.value, base.etag),
    clashes: merging?.clashes ?? null,
    accept: (names) => {
      if (!merging) return
      const { theirs, merged } = merging
      const kept = Object.fromEntries(names.map((name) => [name, theirs.value[name]]))
      const value = { ...merged, ...kept } as T
      setMerging(null)
      setBase(theirs)
      draft.replace(value)
      void send(value, theirs.etag)
    },
    cancelMerge: () => setMerging(null),
    of: (path) => (error instanceof ApiError ? error.of(path) : undefined),
  }
}
