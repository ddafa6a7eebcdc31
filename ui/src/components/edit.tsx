// Editing one object of the API: the draft, the version that it is based on, and the merge with a change that another
// user saved meanwhile.

import { useState, type ReactNode } from 'react'
import { ApiError, type Answer } from '@/api/client'
import { useChange } from '@/api/query'
import { say } from '@/session/toasts'
import { useText } from '@/text'
import { dropDraft, merge, readDraft, useDraft } from './draft'
import type { Clash, Draft, Fields, Secrets, Version } from './draft'
import { MergeDialog } from './merge-dialog'

interface Options<T extends Fields, R> {
  /** Key of the draft. */
  key: string
  /** What is stored now, or what a new object starts with. */
  version: Version<T>
  secrets?: Secrets<T>
  /** Saves the draft over the version with this tag. */
  save: (value: T, etag: string | null) => Promise<Answer<R>>
  /** Reads the object again. A new object has nothing to read. */
  read?: () => Promise<Version<T>>
  /** What is said once it is saved. */
  said?: (saved: R) => string
  onSaved?: (saved: R) => void
}

export interface Edit<T extends Fields> {
  draft: Draft<T>
  error: Error | null
  /** The error of the API, for the fields. */
  problems: ApiError | null
  /** What is wrong with a field. */
  of: (path: string) => string | undefined
  busy: boolean
  submit: () => void
  /** Drops the draft, and what was wrong with it. */
  forget: () => void
  /** The choice between two changes of one field, while it is open. */
  dialog: ReactNode
}

interface Base<T> extends Version<T> {
  /** It is what was sent; the gateway may have stored it in another form. */
  sent?: boolean
}

interface Conflict<T> {
  merged: T
  clashes: Clash[]
  theirs: Version<T>
}

/** A form of an object that is saved as a whole. */
export function useEdit<T extends Fields, R = unknown>(options: Options<T, R>): Edit<T> {
  const { key, version, read } = options
  const text = useText()
  // A draft that was kept goes on from the version that it was written over.
  const [base, setBase] = useState<Base<T>>(() => keptBase(key, version) ?? version)
  const draft = useDraft(key, base.value, options.secrets, base.etag)
  const [conflict, setConflict] = useState<Conflict<T> | null>(null)
  const [unread, setUnread] = useState<Error | null>(null)
  const change = useChange(({ value, etag }: Version<T>) => options.save(value, etag))

  const startFrom = (from: Base<T>, value: T) => {
    setBase(from)
    draft.replace(value)
  }
  // A newer version is stored, and nothing was written here: it is shown.
  if (follows(version, base) && !draft.dirty && !change.isPending && !conflict)
    startFrom(version, version.value)

  const send = (value: T, from: Version<T>) => {
    setUnread(null)
    change.mutate(
      { value, etag: from.etag },
      {
        onSuccess: (answer) => {
          dropDraft(key)
          const kept = { ...value, ...secretsOf(options.secrets, value, version.value) }
          startFrom({ value: kept, etag: answer.etag, sent: true }, kept)
          say(options.said?.(answer.data) ?? text.common.saved, answer.warnings)
          options.onSaved?.(answer.data)
        },
        onError: (failed) => {
          if (!read || !isOutdated(failed)) return
          read().then(
            (theirs) => setConflict({ ...merge(from.value, value, theirs.value), theirs }),
            (error: Error) => setUnread(error),
          )
        },
      },
    )
  }
  const accept = ({ merged, theirs }: Conflict<T>, names: string[]) => {
    const value = { ...merged, ...picked(theirs.value, names) }
    setConflict(null)
    startFrom(theirs, value)
    send(value, theirs)
  }
  const drop = () => setConflict(null)
  const error = unread ?? (read && isOutdated(change.error) ? null : change.error)
  const problems = error instanceof ApiError ? error : null
  return {
    draft,
    error,
    problems,
    of: (path) => problems?.of(path),
    busy: change.isPending,
    submit: () => send(draft.value, base),
    forget: () => {
      draft.discard()
      setUnread(null)
      change.reset()
    },
    dialog: conflict ? (
      <MergeDialog clashes={conflict.clashes} onClose={drop} onMerge={(names) => accept(conflict, names)} />
    ) : null,
  }
}

function isOutdated(error: Error | null): boolean {
  return error instanceof ApiError && error.status === 412
}

/** The revision of an entity tag such as `"28.8964e91ab76284be"`: the rest changes with the state that is observed. */
export function revisionOf(etag: string | null): number {
  return Number(/^(?:W\/)?"(\d+)/.exec(etag ?? '')?.[1] ?? -1)
}

function follows<T>(version: Version<T>, base: Base<T>): boolean {
  const [now, then] = [revisionOf(version.etag), revisionOf(base.etag)]
  return now > then || (base.sent === true && now >= 0 && now === then)
}

function picked<T extends Fields>(value: T, names: readonly (keyof T)[]): Partial<T> {
  return Object.fromEntries(names.map((name) => [name, value[name]])) as Partial<T>
}

/** The secrets as they were read: what was sent of them does not stay in the form. */
function secretsOf<T extends Fields>(secrets: Secrets<T> = [], sent: T, read: T): Partial<T> {
  const names = typeof secrets === 'function' ? secrets(sent) : secrets
  return Object.fromEntries(names.map((name) => [name, read[name] ?? ''])) as Partial<T>
}

function keptBase<T extends Fields>(key: string, version: Version<T>): Version<T> | null {
  const base = readDraft(key)?.base
  // Of a new object there is no older version.
  return base && version.etag !== null
    ? { value: { ...version.value, ...base.value } as T, etag: base.etag }
    : null
}
