// Editing one object of the API: a draft, saving it, and merging with what another user saved meanwhile.

import { useState, type ReactNode } from 'react'
import { useQueryClient } from '@tanstack/react-query'
import { ApiError, type Answer } from '@/api/client'
import { say } from '@/app/toasts'
import { merge, useDraft, type Clash, type Draft as Drafting } from '@/components/draft'
import { MergeDialog } from '@/components/merge-dialog'

type Fields = Record<string, unknown>

interface Object_ {
  id: string
  name: string
  revision: number
}

interface Editing<T extends Fields, R extends Object_> {
  /** Key of the draft. */
  key: string
  /** Null for a new one. */
  existing: R | null
  start: T
  inputOf: (object: R) => T
  /** Creates it, or replaces it if it still has this entity tag. */
  write: (value: T, etag: string | null) => Promise<Answer<R>>
  /** Reads it again. */
  read: (id: string) => Promise<Answer<R>>
  said: (name: string) => string
  onSaved: (object: R) => void
}

export interface Editor<T extends Fields> {
  draft: Drafting<T>
  error: Error | null
  /** The error of the API, for the fields. */
  problem: ApiError | null
  busy: boolean
  submit: () => void
  forget: () => void
  dialog: ReactNode
}

export function useEditor<T extends Fields, R extends Object_>(editing: Editing<T, R>): Editor<T> {
  const { existing, inputOf } = editing
  const queries = useQueryClient()
  // The version that is edited, and its revision.
  const [base, setBase] = useState({ value: editing.start, revision: existing?.revision ?? 0 })
  const draft = useDraft<T>(editing.key, base.value)
  const [error, setError] = useState<Error | null>(null)
  const [busy, setBusy] = useState(false)
  const [clash, setClash] = useState<{ merged: T; clashes: Clash[]; theirs: R } | null>(null)

  // Somebody else saved it, and nothing was written here: the new version is shown.
  if (existing && existing.revision > base.revision && !draft.dirty && !busy) {
    const value = inputOf(existing)
    setBase({ value, revision: existing.revision })
    draft.replace(value)
  }

  const save = async (value: T, revision: number) => {
    setBusy(true)
    setError(null)
    try {
      const answer = await editing.write(value, existing ? `"${revision}"` : null)
      say(editing.said(answer.data.name), answer.warnings)
      draft.discard()
      const saved = inputOf(answer.data)
      setBase({ value: saved, revision: answer.data.revision })
      draft.replace(saved)
      await queries.invalidateQueries()
      editing.onSaved(answer.data)
    } catch (failed) {
      if (existing && failed instanceof ApiError && failed.status === 412) {
        try {
          const theirs = (await editing.read(existing.id)).data
          setClash({ ...merge(base.value, value, inputOf(theirs)), theirs })
        } catch (gone) {
          setError(gone as Error)
        }
      } else setError(failed as Error)
    }
    setBusy(false)
  }

  const accept = (theirs: string[]) => {
    if (!clash) return
    const other: Fields = inputOf(clash.theirs)
    const merged = Object.fromEntries(
      Object.entries(clash.merged).map(([field, value]) => [
        field,
        theirs.includes(field) ? other[field] : value,
      ]),
    ) as T
    setBase({ value: inputOf(clash.theirs), revision: clash.theirs.revision })
    draft.replace(merged)
    setClash(null)
    void save(merged, clash.theirs.revision)
  }

  return {
    draft,
    error,
    problem: error instanceof ApiError ? error : null,
    busy,
    submit: () => void save(draft.value, base.revision),
    forget: () => {
      draft.discard()
      setError(null)
    },
    dialog: clash ? (
      <MergeDialog clashes={clash.clashes} onClose={() => setClash(null)} onMerge={accept} />
    ) : null,
  }
}
