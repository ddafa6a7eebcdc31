// Who edited policies since they were applied, from the audit log.

import type { Schemas } from '@/api/client'

type Entry = Pick<Schemas['AuditEntry'], 'timestamp' | 'actor' | 'result' | 'details'>

/** The actors that changed each policy after a time, the last one first. */
export function editorsSince(entries: readonly Entry[], since: string | null): Map<string, string[]> {
  const editors = new Map<string, string[]>()
  for (const entry of entries) {
    if (entry.result !== 'success' || (since !== null && Date.parse(entry.timestamp) <= Date.parse(since)))
      continue
    const { changes } = (entry.details ?? {}) as { changes?: { type: string; id: string }[] }
    for (const change of changes ?? [])
      if (change.type === 'routing_policy')
        editors.set(change.id, [...new Set([...(editors.get(change.id) ?? []), entry.actor])])
  }
  return editors
}
