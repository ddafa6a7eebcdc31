// The filters of the list of devices, as they stand in its address.

import type { Schemas } from '@/api/client'
import type { Search } from '@/app/search-params'

type Device = Schemas['Device']

export interface Filters {
  words: string[]
  status?: string
  group?: string
  trustClass?: string
  /** `tunnel`, `block`, `direct`, or `protected` for the first two. */
  decision?: string
}

export function filtersOf(search: Search): Filters {
  return {
    words: (search.q ?? '').toLowerCase().split(/\s+/).filter(Boolean),
    status: search.status || undefined,
    group: search.group || undefined,
    trustClass: search.class || undefined,
    decision: search.decision || undefined,
  }
}

/** The trust class of a device: its own, else the first of its groups that has one, else `standard`. */
export function trustClassOf(
  device: Pick<Device, 'trust_class' | 'groups'>,
  groups: ReadonlyMap<string, Pick<Schemas['DeviceGroup'], 'trust_class'>>,
): string {
  if (device.trust_class) return device.trust_class
  for (const id of device.groups ?? []) {
    const inherited = groups.get(id)?.trust_class
    if (inherited) return inherited
  }
  return 'standard'
}

/** Reports whether a device passes all filters but that of the decision. */
export function passes(
  device: Device,
  filters: Filters,
  groups: ReadonlyMap<string, Pick<Schemas['DeviceGroup'], 'trust_class'>>,
): boolean {
  if (filters.status && device.status !== filters.status) return false
  if (filters.group && !(device.groups ?? []).includes(filters.group)) return false
  if (filters.trustClass && trustClassOf(device, groups) !== filters.trustClass) return false
  if (filters.words.length === 0) return true
  const text = [
    device.name,
    device.hostname,
    device.mac,
    ...device.macs,
    ...(device.ips ?? []),
    device.vendor,
    ...device.tags,
  ]
    .join(' ')
    .toLowerCase()
  return filters.words.every((word) => text.includes(word))
}

/** Reports whether a decision is the one that is filtered for. One that is not known yet is not. */
export function decides(filter: string | undefined, decision: string | undefined): boolean {
  if (!filter) return true
  if (filter === 'protected') return decision === 'tunnel' || decision === 'block'
  return decision === filter
}

/** Numerical order of the first IPv4 address, others behind. */
export function addressKey(device: Pick<Device, 'ips'>): string {
  const address = device.ips?.find((ip) => ip.includes('.')) ?? device.ips?.[0] ?? ''
  return address.includes('.')
    ? address
        .split('.')
        .map((part) => part.padStart(3, '0'))
        .join('.')
    : `~${address}`
}
