// The audit trail: filters of the address, what an entry changed, and whether the entries follow one another.

import type { Schemas } from '@/api/client'
import type { QueryOf } from '@/api/query'
import type { Search } from '@/session/search-params'
import type { FieldDiff } from '@/components/field-diff'

export type AuditEntry = Schemas['AuditEntry']

/** Entries that are read at once. */
export const PAGE = 50

export const FILTERS = ['actor', 'action', 'resource_type', 'resource_id', 'request_id', 'result'] as const
export type Filter = (typeof FILTERS)[number]

/**
 * The query of an address: its filters, and the entry before which it looks. What the API cannot read it answers with an error,
 * which the page shows.
 */
export function queryOf(search: Search) {
  const query: Partial<Record<Filter | 'before', string>> & { limit: number } = { limit: PAGE }
  for (const name of [...FILTERS, 'before'] as const) {
    const value = search[name]
    if (value) query[name] = value
  }
  return query as QueryOf<'/audit'> & { limit: number }
}

/** One object that an entry changed. */
export interface Changed {
  op: string
  type: string
  id: string | null
  name: string
  /** Fields with their values before and after, as far as the entry has them. */
  diff: Record<string, FieldDiff>
  /** Changed fields without values. */
  others: string[]
}

/** Reads the changes of an entry. What is not known stays in `rest`. */
export function changesOf(details: unknown): { changes: Changed[]; rest: [string, unknown][] } {
  if (!isObject(details)) return { changes: [], rest: [] }
  const { changes, ...rest } = details
  return {
    changes: Array.isArray(changes) ? changes.filter(isObject).map(changeOf) : [],
    rest: Object.entries(rest),
  }
}

function changeOf(change: Record<string, unknown>): Changed {
  const diff = isObject(change.diff) ? change.diff : {}
  const fields = Object.entries(diff).filter((field): field is [string, FieldDiff] => isObject(field[1]))
  const named = Array.isArray(change.fields) ? change.fields.map(String) : []
  return {
    op: String(change.op ?? ''),
    type: String(change.type ?? ''),
    id: typeof change.id === 'string' ? change.id : null,
    name: String(change.name ?? change.id ?? ''),
    diff: Object.fromEntries(fields),
    others: named.filter((name) => !fields.some(([path]) => topOf(path) === name)),
  }
}

/** The field of an object that a path leads into: `peers[0].port` is in `peers`. */
function topOf(path: string): string {
  return path.split(/[.[]/, 1)[0] ?? path
}

/** Names of the fields that a change of an existing object or setting touched. */
export function fieldNames(change: Changed): string[] {
  if (change.op === 'create' || change.op === 'delete') return []
  return [...new Set([...Object.keys(change.diff).map(topOf), ...change.others])]
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/**
 * Compares each entry with the one before it. Returns the number of the first that does not name its hash, or `null` if
 * all do. The entries are newest first and without gaps by filters.
 */
export function brokenLink(entries: AuditEntry[]): number | null {
  for (let index = 0; index + 1 < entries.length; index += 1) {
    const entry = entries[index]
    const before = entries[index + 1]
    if (entry && before?.hash && entry.prev_hash !== before.hash) return entry.id
  }
  return null
}

const PAGES: Record<string, string> = {
  device: '/devices/',
  routing_policy: '/policies/',
  tunnel: '/paths/tunnels/',
  test_definition: '/activity/tests/',
}

/** Address of the page of an object, if it has one. */
export function pageOf(type: string, id: string | null): string | undefined {
  const page = PAGES[type]
  return page && id ? `${page}${id}` : undefined
}
