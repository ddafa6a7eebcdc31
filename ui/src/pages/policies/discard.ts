// Setting saved policies back to the active ones. The daemon has no such operation, and shows of an active policy only
// some fields; the audit log says which fields were edited since.

import type { Schemas } from '@/api/client'
import type { Hop, Pending, PolicyInput } from './model'

export interface Edit {
  fields: string[]
  actors: string[]
}

type Entry = Pick<Schemas['AuditEntry'], 'timestamp' | 'actor' | 'result' | 'details'>

/** The fields of each policy that were edited after a time. */
export function editsSince(entries: readonly Entry[], since: string | null): Map<string, Edit> {
  const edits = new Map<string, Edit>()
  for (const entry of entries) {
    if (entry.result !== 'success' || (since !== null && Date.parse(entry.timestamp) <= Date.parse(since)))
      continue
    const { changes } = (entry.details ?? {}) as {
      changes?: { type: string; id: string; fields?: string[] }[]
    }
    for (const change of changes ?? []) {
      if (change.type !== 'routing_policy') continue
      const edit = edits.get(change.id) ?? { fields: [], actors: [] }
      edits.set(change.id, {
        fields: [...new Set([...edit.fields, ...(change.fields ?? [])])],
        actors: [...new Set([...edit.actors, entry.actor])],
      })
    }
  }
  return edits
}

/** Fields of an active policy that the daemon shows. */
export const SHOWN = ['name', 'priority', 'enabled', 'fail_policy', 'hops']

/** Edits took each other back: the policy is as the active one. */
export function isSame(differing: number, edit: Edit | undefined): boolean {
  return differing === 0 && edit !== undefined && edit.fields.every((field) => SHOWN.includes(field))
}

/** How one policy is set back: deleted, or written with these fields. Null where the daemon does not show enough. */
export function restoring(pending: Pending, edit: Edit | undefined): 'delete' | Partial<PolicyInput> | null {
  const { kind, stored, applied } = pending
  if (kind === 'new') return 'delete'
  if (!stored || !applied || !edit || edit.fields.length === 0) return null
  const change: Partial<PolicyInput> = {}
  for (const field of edit.fields) {
    if (field === 'priority') change.priority = applied.priority
    else if (field === 'enabled') change.enabled = true
    else if (field === 'name') change.name = applied.name
    // A profile or a class may be why the active policy fails so.
    else if (field === 'fail_policy' && !stored.profile && !stored.privacy_class)
      change.fail_policy = applied.fail_policy
    else if (field === 'hops' && !stored.profile && !stored.chain)
      change.hops = applied.hops.map(({ type, target }) => ({ type, target }) as Hop)
    else return null
  }
  return change
}
