// Names of rules, lists and feeds by their ids.

import { useGet } from '@/api/query'

export type Names = ReadonlyMap<string, string>

/** Reads what a query can match, by id. */
export function useListNames(): Names {
  const block = useGet('/dns/blocklist', {}, { every: 60_000 }).data?.data ?? []
  const allow = useGet('/dns/allowlist', {}, { every: 60_000 }).data?.data ?? []
  const feeds = useGet('/dns/threat-feeds', {}, { every: 60_000 }).data?.data ?? []
  const rules = useGet('/dns/filter-rules', {}, { every: 60_000 }).data?.data ?? []
  const rewrites = useGet('/dns/rewrites', {}, { every: 60_000 }).data?.data ?? []
  const names = new Map<string, string>()
  for (const each of [...block, ...allow]) names.set(each.id, each.name ?? each.domain ?? each.url ?? each.id)
  for (const each of feeds) names.set(each.id, each.name)
  for (const each of rules) names.set(each.id, each.comment || each.pattern)
  for (const each of rewrites) names.set(each.id, each.domain)
  return names
}

/** Names of devices by id. */
export function useDeviceNames(): Names {
  const devices = useGet('/devices', {}, { every: 60_000 }).data?.data ?? []
  return new Map(devices.map((device) => [device.id, device.name]))
}
