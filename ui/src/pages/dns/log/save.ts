// The shown entries as a file.

import type { Schemas } from '@/api/client'

type Entry = Schemas['Entry']

/** One entry on each line, as the API gave it. */
export function saveEntries(entries: readonly Entry[]) {
  const lines = entries.map((entry) => JSON.stringify(entry)).join('\n')
  const address = URL.createObjectURL(new Blob([lines, '\n'], { type: 'application/x-ndjson' }))
  const link = document.createElement('a')
  link.href = address
  link.download = `queries-${new Date().toISOString().slice(0, 19).replaceAll(':', '')}.ndjson`
  link.click()
  URL.revokeObjectURL(address)
}
