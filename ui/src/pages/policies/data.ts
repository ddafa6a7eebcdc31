// What the pages of policies read.

import { useQuery } from '@tanstack/react-query'
import { call, client, type Schemas } from '@/api/client'
import { hasParameter } from '@/api/operations'
import { live } from '@/api/live'
import { SLOW, useGet } from '@/api/query'
import type { State } from '@/components/state'
import { useText, type Text } from '@/text'
import { type Hop, pendingOf, type Policy, valuesOf } from './model'
import type { Origins } from './origin'

export const ALL = {}

export const usePolicies = () => useGet('/routing/policies', ALL)
export const useDevices = () => useGet('/devices', ALL)
export const useGroups = () => useGet('/device-groups', ALL)
export const useTunnels = () => useGet('/tunnels', ALL)
export const useProxies = () => useGet('/proxies', ALL)
export const useProfiles = () => useGet('/profiles', ALL)
export const useChains = () => useGet('/chains', ALL)
export const useClasses = () => useGet('/privacy-classes', ALL)

/** Choices by id; one that is stored by its name stays so. */
export function byName(list: { id: string; name: string }[], chosen: string | null, none: string) {
  return [
    ['', none] as const,
    ...list.map((each): [string, string] => [chosen === each.name ? each.name : each.id, each.name]),
  ]
}

/** The daemon evaluates stored policies as well as applied ones. */
export const EVALUATES_PENDING = hasParameter('GET /policy/leak-matrix', 'pending')

/** The leak matrix, with a column for each hop where the daemon has them. */
export function useMatrix(pending: boolean, enabled = true) {
  const query: Record<string, boolean> = {}
  if (hasParameter('GET /policy/leak-matrix', 'per_hop')) query.per_hop = true
  if (pending && EVALUATES_PENDING) query.pending = true
  return useGet('/policy/leak-matrix', { query } as never, { enabled })
}

export function useConflicts() {
  return useQuery({
    queryKey: ['/policy/conflicts'],
    queryFn: () => call(client.POST('/policy/conflicts')),
    refetchInterval: (query) => live.pause(SLOW, query.state.fetchFailureCount),
  })
}

/** What a change would do, without doing it. Without resources it is that of applying all. */
export function useDryRun(resources: Record<string, unknown>, enabled = true) {
  return useQuery({
    queryKey: ['/validate', resources],
    queryFn: () => call(client.POST('/validate', { body: { resources } as Schemas['PlanInputInput'] })),
    refetchInterval: (query) => live.pause(SLOW, query.state.fetchFailureCount),
    placeholderData: (before) => before,
    enabled,
  })
}

/** What makes the rows of the leak matrix; undefined while that is not known, null if it cannot be read. */
export function useOrigins(): Origins | null | undefined {
  const exceptions = useGet('/exceptions/active')
  const graph = useGet('/policy/paths/graph', {}, { every: 6000 })
  if (exceptions.data && graph.data)
    return { exceptions: exceptions.data.data, graph: graph.data.data.policies }
  return exceptions.error || graph.error ? null : undefined
}

export const useStatus = () => useGet('/status', {}, { every: 3000 })

/** Policies that the next apply changes; undefined while that is not known. */
export function usePending() {
  const policies = usePolicies().data?.data
  const enforced = useGet('/enforce').data?.data
  const changes = useGet('/routing/pending').data?.data
  if (!policies || !enforced || !changes) return undefined
  return pendingOf(policies, enforced.policies, changes)
}

/** Names of devices and groups by their ids. */
export function useNames() {
  const { data, isPending } = useDevices()
  const devices = data?.data
  const groups = useGroups().data?.data
  const device = (id: string) => devices?.find((each) => each.id === id)?.name ?? id
  const group = (id: string) => groups?.find((each) => each.id === id)?.name ?? id
  return { device, group, devices: devices ?? [], groups: groups ?? [], loading: isPending }
}

/** What a policy matches, in words. */
export function sourceWords(
  policy: Pick<Policy, 'source_type' | 'source_value'>,
  names: Pick<ReturnType<typeof useNames>, 'device' | 'group'>,
  text: Text,
): string {
  const kind = text.policies.sources[policy.source_type]
  const name = { device: names.device, device_group: names.group }[policy.source_type as string]
  const values = valuesOf(policy.source_value).map((value) => name?.(value) ?? value)
  return values.length === 0 ? kind : `${kind} ${values.join(', ')}`
}

export interface HopState {
  state: State
  /** Why it is not usable. */
  reason: string
}

/** The state of a hop. */
export function useHopState(): (hop: Hop) => HopState {
  const text = useText()
  const rows = useGet('/policy/fail-matrix').data?.data
  const tunnels = useTunnels().data?.data
  const proxies = useProxies().data?.data
  return (hop) => {
    if (hop.type === 'interface') return { state: 'direct', reason: '' }
    const known = rows
      ?.flatMap((row) => row.hops)
      .find((each) => each.type === hop.type && each.target === hop.target)
    if (known) return { state: known.healthy ? 'ok' : 'down', reason: known.reason }
    if (hop.type === 'vpn' && tunnels) {
      const tunnel = tunnels.find((each) => each.name === hop.target || each.id === hop.target)
      if (!tunnel) return { state: 'down', reason: text.policies.noSuchHop }
      return { state: tunnel.healthy ? 'ok' : 'down', reason: tunnel.last_error ?? '' }
    }
    if (hop.type === 'proxy' && proxies) {
      const proxy = proxies.find((each) => each.name === hop.target || each.id === hop.target)
      if (!proxy) return { state: 'down', reason: text.policies.noSuchHop }
      return {
        state: proxy.status === 'up' ? 'ok' : proxy.status === 'unknown' ? 'unknown' : 'down',
        reason: proxy.last_error ?? '',
      }
    }
    return { state: 'unknown', reason: '' }
  }
}
