// Filters of the query log: what the address says, what of it the daemon applies, and the rest.

import type { Schemas } from '@/api/client'
import type { Search } from '@/app/search-params'
import type { LogQuery } from './store'

export type Entry = Schemas['Entry']

/** The filters by their names in the address. */
export const NAMES = [
  'domain',
  'client',
  'status',
  'reason',
  'list',
  'type',
  'upstream',
  'cached',
  'slower',
  'from',
  'to',
] as const

export type Name = (typeof NAMES)[number]
export type Filters = Partial<Record<Name, string>>

/** Statuses that the daemon can filter by. */
export const STATUSES = [
  'allowed',
  'blocked',
  'cached',
  'rewritten',
  'forwarded',
  'refused',
  'error',
] as const
/** What a query can match. `none` is no match. */
export const REASONS = ['rule', 'allowlist', 'blocklist', 'threat_feed', 'rewrite', 'canary', 'none'] as const

export function readFilters(search: Search): Filters {
  const filters: Filters = {}
  for (const name of NAMES) {
    const value = search[name]
    if (value !== undefined && value !== '') filters[name] = value
  }
  return filters
}

/** The filters that the daemon applies. Only what is cached is a status of its own. */
export function forServer(filters: Filters): LogQuery {
  const status = filters.status ?? (filters.cached === 'yes' ? 'cached' : undefined)
  return {
    ...(filters.client ? { client: filters.client } : {}),
    ...(filters.domain ? { domain: filters.domain } : {}),
    ...(status ? { status } : {}),
  }
}

/** The names of the filters that only the loaded entries are searched by. */
export function loadedOnly(filters: Filters): Name[] {
  return NAMES.filter((name) => {
    if (filters[name] === undefined) return false
    if (name === 'cached') return filters.cached !== 'yes' || filters.status !== undefined
    return !['domain', 'client', 'status', 'from', 'to'].includes(name)
  })
}

/** Reports whether an entry passes the filters that the daemon does not apply; the time range apart. */
export function passes(entry: Entry, filters: Filters): boolean {
  const { reason, list, type, upstream, cached, slower } = filters
  if (reason !== undefined && (entry.reason ?? 'none') !== reason) return false
  if (list !== undefined && entry.list_id !== list) return false
  if (type !== undefined && entry.question.type.toLowerCase() !== type.toLowerCase()) return false
  if (upstream !== undefined && entry.upstream !== upstream) return false
  if (cached !== undefined && (entry.status === 'cached') !== (cached === 'yes')) return false
  if (slower !== undefined && !(entry.elapsed_ms > Number(slower))) return false
  return true
}

/** Reports whether an entry is in the time range. */
export function inRange(entry: Entry, filters: Filters): boolean {
  const time = Date.parse(entry.time)
  if (filters.from !== undefined && time < Date.parse(filters.from)) return false
  return filters.to === undefined || time <= Date.parse(filters.to)
}

/** The domain and those above it, of two labels at least: `a.b.example` gives itself and `b.example`. */
export function domainsAbove(name: string): string[] {
  const labels = name.replace(/\.$/, '').split('.')
  const names: string[] = []
  for (let index = 0; index <= Math.max(0, labels.length - 2); index += 1)
    names.push(labels.slice(index).join('.'))
  return names
}

export interface Summary {
  queries: number
  clients: number
  blocked: number
  /** Blocked queries by what they matched. */
  by: [reason: string, count: number][]
}

export function summarise(entries: Entry[]): Summary {
  const clients = new Set<string>()
  const by = new Map<string, number>()
  let blocked = 0
  for (const entry of entries) {
    if (entry.client) clients.add(entry.client.device_id ?? entry.client.ip)
    if (entry.status !== 'blocked') continue
    blocked += 1
    const reason = entry.reason ?? 'none'
    by.set(reason, (by.get(reason) ?? 0) + 1)
  }
  return {
    queries: entries.length,
    clients: clients.size,
    blocked,
    by: [...by].sort((one, other) => other[1] - one[1]),
  }
}
