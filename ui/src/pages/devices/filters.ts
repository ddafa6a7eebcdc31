// The filters of the list of devices, as they stand in its address.

import type { Schemas } from '@/api/client'
import type { Search } from '@/session/search-params'

type Device = Schemas['Device']

export interface Filters {
  words: string[]
  status?: string
  group?: string
  trustClass?: string
}

/** The filters of the path. */
export interface PathFilters {
  /** A decision, a treatment as the verdict counts it, or `protected` for what leaves by a policy or not at all. */
  decision?: string
  /** Id of the policy or exception that decides; `none` for none. */
  policy?: string
  /** Name of a tunnel, an uplink or a proxy. */
  egress?: string
}

type DevicePath = Pick<
  Schemas['DevicePath'],
  'decision' | 'treatment' | 'policy' | 'exception' | 'egress' | 'via' | 'uplink'
>

export function filtersOf(search: Search): Filters {
  return {
    words: (search.q ?? '').toLowerCase().split(/\s+/).filter(Boolean),
    status: search.status || undefined,
    group: search.group || undefined,
    trustClass: search.class || undefined,
  }
}

export function pathFiltersOf(search: Search): PathFilters {
  return {
    decision: search.decision || undefined,
    policy: search.policy || undefined,
    egress: search.egress || undefined,
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

/** Reports whether a device passes all filters but those of its path. */
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

/** Reports whether a path passes the filters. One that is not known yet passes none of them. */
export function passesPath(path: DevicePath | undefined, { decision, policy, egress }: PathFilters): boolean {
  if (!decision && !policy && !egress) return true
  if (!path) return false
  if (decision === 'protected') {
    if (path.treatment !== 'through_policy' && path.treatment !== 'blocked') return false
  } else if (decision && path.decision !== decision && path.treatment !== decision) return false
  if (policy && (policyOf(path)?.id ?? 'none') !== policy) return false
  return !egress || egressesOf(path).includes(egress)
}

/** What decides on a device: an exception before any policy. */
export function policyOf(
  path: Pick<DevicePath, 'policy' | 'exception'>,
): { id: string; name: string } | null {
  if (path.exception) return { id: path.exception.id, name: path.exception.type }
  return path.policy
}

/** Names of what a device leaves by: tunnels, else the proxy or uplink. */
export function egressesOf(path: Pick<DevicePath, 'egress' | 'via' | 'uplink'>): readonly string[] {
  if (path.egress.length > 0) return path.egress
  const name = path.via?.split(':').slice(1).join(':')
  return name ? [name] : path.via && path.uplink ? [path.uplink] : []
}

/** What the paths can be filtered for: policies by name, and egresses. */
export function choicesOf(paths: readonly DevicePath[]): {
  policies: (readonly [id: string, name: string])[]
  egresses: (readonly [name: string, label: string])[]
} {
  const policies = new Map<string, string>()
  const egresses = new Set<string>()
  for (const path of paths) {
    if (path.policy && !path.exception) policies.set(path.policy.id, path.policy.name)
    for (const name of egressesOf(path)) egresses.add(name)
  }
  const byName = (one: readonly [string, string], other: readonly [string, string]) =>
    one[1].localeCompare(other[1])
  return {
    policies: [...policies].sort(byName),
    egresses: [...egresses].map((name) => [name, name] as const).sort(byName),
  }
}

/** Order of a list by path: what is blocked or direct first. */
export function pathKey(path: DevicePath | undefined): string {
  const order = { block: 0, direct: 1, tunnel: 2 }
  return path ? `${order[path.decision] ?? 3} ${egressesOf(path).join()} ${policyOf(path)?.name ?? ''}` : '~'
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
