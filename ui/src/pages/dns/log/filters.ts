// Filters of the query log: what the address says, and the same as parameters of the API, which applies all of them.

import type { Schemas } from '@/api/client'
import type { QueryOf } from '@/api/query'
import type { Search } from '@/session/search-params'

export type Entry = Schemas['Entry']

/** Parameters of `GET /dns/log` that choose entries; those of the page are apart. */
export type LogQuery = Omit<QueryOf<'/dns/log'>, 'limit' | 'before'>

/** The filters by their names in the address. */
export const NAMES = [
  'domain',
  'client',
  'status',
  'list',
  'type',
  'upstream',
  'egress',
  'cached',
  'slower',
  'not_domain',
  'not_client',
  'not_status',
  'not_type',
  'from',
  'to',
] as const

export type Name = (typeof NAMES)[number]

/** Filters by which entries are left out, too: `not_client`. */
export const NEGATABLE = ['client', 'status', 'type'] as const
export type Negatable = (typeof NEGATABLE)[number]

export function isNegatable(name: string): name is Negatable {
  return (NEGATABLE as readonly string[]).includes(name)
}
export type Filters = Partial<Record<Name, string>>

export const STATUSES = [
  'allowed',
  'blocked',
  'cached',
  'rewritten',
  'forwarded',
  'refused',
  'error',
] as const
/** Record types that clients ask for most. */
export const TYPES = ['A', 'AAAA', 'HTTPS', 'MX', 'NS', 'PTR', 'SOA', 'SRV', 'SVCB', 'TXT'] as const

export function readFilters(search: Search): Filters {
  const filters: Filters = {}
  for (const name of NAMES) {
    const value = search[name]
    if (value !== undefined && value !== '') filters[name] = value
  }
  return filters
}

/** The filters as parameters of the API. What it cannot read it answers with an error, which the page shows. */
export function toQuery(filters: Filters): LogQuery {
  const { domain, client, status, list, type, upstream, egress, cached, slower, from, to } = filters
  const not = {
    domain: filters.not_domain,
    client: filters.not_client,
    status: filters.not_status,
    type: filters.not_type,
  }
  return {
    ...(domain === undefined ? {} : { domain }),
    ...(client === undefined ? {} : { client }),
    ...(status === undefined ? {} : { status: status as LogQuery['status'] }),
    ...(list === undefined ? {} : { list }),
    ...(type === undefined ? {} : { type: type.toUpperCase() }),
    ...(upstream === undefined ? {} : { upstream }),
    ...(egress === undefined ? {} : { egress }),
    ...(cached === undefined ? {} : { cached: cached === 'yes' }),
    ...(slower === undefined ? {} : { slower_than: Number(slower) }),
    ...(not.domain === undefined ? {} : { not_domain: not.domain }),
    ...(not.client === undefined ? {} : { not_client: not.client }),
    ...(not.status === undefined ? {} : { not_status: not.status as LogQuery['not_status'] }),
    ...(not.type === undefined ? {} : { not_type: not.type.toUpperCase() }),
    ...(from === undefined ? {} : { since: from }),
    ...(to === undefined ? {} : { until: to }),
  }
}

/** Reports whether a filter other than the time is set. */
export function isNarrowed(filters: Filters): boolean {
  return NAMES.some((name) => name !== 'from' && name !== 'to' && filters[name] !== undefined)
}

/** The domain and those above it, of two labels at least: `a.b.example` gives itself and `b.example`. */
export function domainsAbove(name: string): string[] {
  const labels = name.replace(/\.$/, '').split('.')
  const names: string[] = []
  for (let index = 0; index <= Math.max(0, labels.length - 2); index += 1)
    names.push(labels.slice(index).join('.'))
  return names
}

/** Blocked queries that one list, rule or reason decided. */
export interface BlockedBy {
  reason: string
  /** Id of the list or rule; null if none decided. */
  list: string | null
  name: string | null
  count: number
}

export interface Summary {
  queries: number
  clients: number
  blocked: number
  /** The most frequent first. */
  by: BlockedBy[]
}

export function summarise(entries: readonly Entry[]): Summary {
  const clients = new Set<string>()
  const by = new Map<string, BlockedBy>()
  let blocked = 0
  for (const entry of entries) {
    if (entry.client) clients.add(entry.client.device_id ?? entry.client.ip)
    if (entry.status !== 'blocked') continue
    blocked += 1
    const reason = entry.reason ?? 'none'
    const key = entry.list_id ?? reason
    const known = by.get(key)
    if (known) known.count += 1
    else by.set(key, { reason, list: entry.list_id, name: entry.list?.name ?? null, count: 1 })
  }
  return {
    queries: entries.length,
    clients: clients.size,
    blocked,
    by: [...by.values()].sort((one, other) => other.count - one.count),
  }
}
