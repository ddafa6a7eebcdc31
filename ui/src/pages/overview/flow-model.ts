// What the graph of paths shows: sources of traffic, policies in their order, hops, uplinks, and how they are joined.
// It is built from the policies, so it is as large as they are, whatever the number of devices.

import type { Schemas } from '@/api/client'
import type { State } from '@/components/state'

export type Edge = 'ok' | 'blocked' | 'direct' | 'none'

export interface FlowNode {
  id: string
  name: string
  detail: string
  state: State
  to: string
  search?: Record<string, string>
}

export interface PolicyRow {
  source: FlowNode
  policy: FlowNode
  /** How its traffic leaves now. */
  edge: Edge
  /** Tunnels and other hops of the policy, by id of their node, with the state of each edge. */
  hops: { id: string; edge: Edge }[]
  /** Traffic that goes past all hops, to this uplink; null if it is blocked. */
  direct: string | null
  /** Bytes per second; null without two reads of the counter. */
  rate: number | null
}

export interface Flow {
  rows: PolicyRow[]
  hops: (FlowNode & { uplink: string | null; edge: Edge; rate: number | null })[]
  uplinks: FlowNode[]
  /** Policies that are not drawn: disabled ones, and those beyond the most that fit. */
  hidden: number
}

export interface Words {
  devices: (count: number) => string
  deviceList: (names: string[], more: number) => string
  everything: string
  source: (type: string, value: string) => string
  exception: (type: string) => string
  exceptionUntil: (time: string | null | undefined) => string
  noPolicy: string
  noPolicyName: string
  noPolicyDetail: string
  failPolicy: (policy: string) => string
  blocked: string
  usableHops: (usable: number, all: number) => string
  noHops: string
  tunnelDown: (reason: string | null) => string
  tunnelIdle: string
  rate: (bytesPerSecond: number) => string
  uplink: (state: string, active: boolean) => string
  unknownTarget: string
}

export interface FlowInput {
  policies: readonly Schemas['RoutingPolicy'][]
  devices: ReadonlyMap<string, Schemas['Device']>
  groups: ReadonlyMap<string, Schemas['DeviceGroup']>
  exceptions: readonly Schemas['Exception'][]
  tunnels: readonly Schemas['Tunnel'][]
  uplinks: readonly Schemas['UplinkHealth'][]
  activeUplink: string | null
  noPolicyDevices: number
  rate: (counter: string) => number | null
  words: Words
}

/** Rows that the graph shows. */
export const MOST_ROWS = 14

type Policy = Schemas['RoutingPolicy']
type Hop = Schemas['Hop']

export function hopsOf(policy: Policy): readonly Hop[] {
  return policy.effective?.hops ?? policy.hops
}

/** The state of a tunnel as people read it: a degraded one is down. */
export function tunnelState(tunnel: Pick<Schemas['Tunnel'], 'status' | 'enabled' | 'admin_state'>): State {
  if (!tunnel.enabled || (tunnel.admin_state === 'down' && tunnel.status === 'down')) return 'idle'
  switch (tunnel.status) {
    case 'up':
      return 'ok'
    case 'degraded':
    case 'error':
    case 'down':
      return 'down'
    case undefined:
      return 'unknown'
    default:
      return 'degraded'
  }
}

export function buildFlow(input: FlowInput): Flow {
  const { words } = input
  const active =
    input.activeUplink ?? (input.uplinks.length === 1 ? input.uplinks[0]?.uplink : undefined) ?? null
  const tunnels = new Map(input.tunnels.map((tunnel) => [tunnel.name, tunnel]))
  const uplinkByInterface = new Map(input.uplinks.map((uplink) => [uplink.interface, uplink.uplink]))
  const hops = new Map<string, Flow['hops'][number]>()

  const hopNode = (hop: Hop) => {
    const id = `${hop.type}:${hop.target}`
    const known = hops.get(id)
    if (known) return known
    const tunnel = hop.type === 'vpn' ? tunnels.get(hop.target) : undefined
    const uplinkName = (name: string | undefined) =>
      !name || name === 'auto' ? active : (uplinkByInterface.get(name) ?? name)
    let node: Flow['hops'][number]
    if (tunnel) {
      const state = tunnelState(tunnel)
      const rate = input.rate(`tunnel.${tunnel.id}`)
      const detail =
        state === 'down'
          ? words.tunnelDown(tunnel.last_error ?? null)
          : state === 'idle'
            ? words.tunnelIdle
            : rate === null
              ? String(tunnel.type)
              : words.rate(rate)
      node = {
        id,
        name: tunnel.name,
        detail,
        state,
        to: `/paths/tunnels/${tunnel.id}`,
        uplink: uplinkName(tunnel.uplink),
        edge: state === 'ok' || state === 'degraded' ? 'ok' : 'none',
        rate,
      }
    } else {
      const isInterface = hop.type === 'interface'
      node = {
        id,
        name: hop.target,
        detail: hop.type === 'vpn' ? words.unknownTarget : hop.type,
        state: hop.type === 'vpn' ? 'down' : 'unknown',
        to: '/paths',
        uplink: isInterface ? uplinkName(hop.target) : active,
        edge: isInterface ? 'direct' : hop.type === 'vpn' ? 'none' : 'ok',
        rate: null,
      }
    }
    hops.set(id, node)
    return node
  }

  const enabled = input.policies
    .filter((policy) => policy.enabled && policy.routing === true)
    .sort((one, other) => one.priority - other.priority || one.created_at.localeCompare(other.created_at))
  const rows: PolicyRow[] = []
  for (const exception of input.exceptions) rows.push(exceptionRow(exception, input, active))
  for (const policy of enabled.slice(0, Math.max(0, MOST_ROWS - rows.length)))
    rows.push(policyRow(policy, input, active, hopNode))
  if (input.noPolicyDevices > 0) {
    const count = input.noPolicyDevices
    rows.push({
      source: {
        id: 'none',
        name: words.devices(count),
        detail: words.noPolicy,
        state: 'direct',
        to: '/devices',
        search: { decision: 'direct' },
      },
      policy: {
        id: 'p-none',
        name: words.noPolicyName,
        detail: words.noPolicyDetail,
        state: 'direct',
        to: '/policies',
      },
      edge: 'direct',
      hops: [],
      direct: active,
      rate: null,
    })
  }
  const uplinks = input.uplinks.map((uplink): FlowNode => {
    const isActive = uplink.uplink === active
    return {
      id: uplink.uplink,
      name: uplink.uplink,
      detail: words.uplink(uplink.state, isActive),
      state: uplinkState(uplink, isActive),
      to: '/network',
    }
  })
  // An uplink that a tunnel names and that is not monitored is drawn too.
  for (const name of new Set([...hops.values()].map((hop) => hop.uplink)))
    if (name !== null && !uplinks.some((uplink) => uplink.id === name))
      uplinks.push({ id: name, name, detail: '', state: 'unknown', to: '/network' })
  const shown = rows.filter((row) => row.policy.id.startsWith('policy.')).length
  return { rows, hops: [...hops.values()], uplinks, hidden: input.policies.length - shown }
}

export function uplinkState(uplink: Schemas['UplinkHealth'], active: boolean): State {
  switch (uplink.state) {
    case 'online':
      return active ? 'ok' : 'idle'
    case 'offline':
      return 'down'
    case 'degraded':
    case 'captive':
      return 'degraded'
    case 'disabled':
      return 'idle'
    default:
      return 'unknown'
  }
}

function policyRow(
  policy: Policy,
  input: FlowInput,
  active: string | null,
  hopNode: (hop: Hop) => Flow['hops'][number],
): PolicyRow {
  const { words } = input
  const list = hopsOf(policy)
  const failPolicy = policy.effective?.fail_policy ?? policy.fail_policy ?? 'fail-closed'
  const blocked = policy.status === 'blocked' || policy.status === 'error'
  const chosen = policy.active_hop ?? null
  const nodes = list.map(hopNode)
  const usable = nodes.filter((node) => node.edge !== 'none').length
  const direct = !blocked && (policy.status === 'fallback' || list.length === 0)
  const edge: Edge = blocked ? 'blocked' : direct ? 'direct' : 'ok'
  const shared = policy.effective?.splitting ?? policy.splitting
  const hops = nodes.map((node, index) => {
    const hop = list[index]
    const inUse =
      edge === 'ok' &&
      node.edge !== 'none' &&
      (shared || chosen === null || (hop?.type === chosen.type && hop.target === chosen.target))
    return { id: node.id, edge: inUse ? (node.edge === 'direct' ? 'direct' : 'ok') : ('none' as Edge) }
  })
  const rate = input.rate(`policy.${policy.id}`)
  const details = [words.failPolicy(failPolicy)]
  if (list.length === 0) details.push(words.noHops)
  else if (!blocked && usable < list.length && list.length > 1)
    details.push(words.usableHops(usable, list.length))
  else if (blocked) details.push(words.blocked)
  else if (rate !== null && rate > 0) details.push(words.rate(rate))
  return {
    source: sourceNode(policy, input, edge),
    policy: {
      id: `policy.${policy.id}`,
      name: `${policy.priority}  ${policy.name}`,
      detail: details.join(', '),
      state: edge === 'ok' && usable < list.length && shared ? 'degraded' : stateOf(edge),
      to: `/policies/${policy.id}`,
    },
    edge,
    hops,
    direct: direct ? active : null,
    rate,
  }
}

function exceptionRow(exception: Schemas['Exception'], input: FlowInput, active: string | null): PolicyRow {
  const { words } = input
  const cut = exception.type === 'quarantine'
  const edge: Edge = cut ? 'blocked' : 'direct'
  const device = input.devices.get(exception.device_id)
  return {
    source: {
      id: `exception-source.${exception.id}`,
      name: device?.name ?? words.devices(1),
      detail: device?.ips?.[0] ?? '',
      state: stateOf(edge),
      to: `/devices/${exception.device_id}`,
    },
    policy: {
      id: `exception.${exception.id}`,
      name: words.exception(exception.type),
      detail: words.exceptionUntil(exception.expires_at),
      state: stateOf(edge),
      to: `/devices/${exception.device_id}`,
      search: { tab: 'exceptions' },
    },
    edge,
    hops: [],
    direct: cut ? null : active,
    rate: null,
  }
}

function stateOf(edge: Edge): State {
  return edge === 'none' ? 'unknown' : edge
}

function sourceNode(policy: Policy, input: FlowInput, edge: Edge): FlowNode {
  const { words } = input
  const base = { id: `source.${policy.id}`, state: stateOf(edge) }
  const values = policy.source_value
    .split(',')
    .map((value) => value.trim())
    .filter(Boolean)
  if (policy.source_type === 'device' || policy.source_type === 'device_group') {
    const groups = policy.source_type === 'device_group' ? values : []
    const ids =
      policy.source_type === 'device'
        ? values
        : [...new Set(groups.flatMap((id) => input.groups.get(id)?.members ?? []))]
    const named = ids.slice(0, 2).map((id) => input.devices.get(id)?.name ?? id)
    const group = groups.length === 1 ? input.groups.get(groups[0] ?? '') : undefined
    const only = ids.length === 1 ? input.devices.get(ids[0] ?? '') : undefined
    if (only && !group)
      return { ...base, name: only.name, detail: only.ips?.[0] ?? only.mac ?? '', to: `/devices/${only.id}` }
    return {
      ...base,
      name: group?.name ?? words.devices(ids.length),
      detail:
        ids.length > 2 && group
          ? words.devices(ids.length)
          : words.deviceList(named, ids.length - named.length),
      to: group ? `/devices/groups/${group.id}` : `/policies/${policy.id}`,
    }
  }
  if (policy.source_type === 'all') return { ...base, name: words.everything, detail: '', to: '/devices' }
  return {
    ...base,
    name: values.length > 1 ? `${values[0]} +${values.length - 1}` : (values[0] ?? '-'),
    detail: words.source(policy.source_type, policy.source_value),
    to: `/policies/${policy.id}`,
  }
}
