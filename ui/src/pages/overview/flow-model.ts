// What the graph of paths shows: sources of traffic, policies in their order, hops, uplinks, and how they are joined.
// The daemon evaluates the paths and counts the devices; the stored policies and devices only name the sources.

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
  /** Policies that are not drawn: those beyond the most that fit, first those without devices. */
  hidden: number
}

export interface Words {
  devices: (count: number) => string
  deviceList: (names: string[], more: number) => string
  everything: string
  source: (type: string, value: string) => string
  exceptionUntil: (time: string | null | undefined) => string
  noPolicy: string
  noPolicyName: string
  noPolicyDetail: string
  origin: (origin: string) => string
  blocked: string
  policyDevices: (count: number) => string
  usableHops: (usable: number, all: number) => string
  noHops: string
  hopDown: (reason: string) => string
  rate: (bytesPerSecond: number) => string
  uplink: (state: string, active: boolean) => string
}

export interface FlowInput {
  graph: Schemas['PathGraph']
  /** Stored policies, which name the sources. */
  policies: readonly Schemas['RoutingPolicy'][]
  devices: ReadonlyMap<string, Schemas['Device']>
  groups: ReadonlyMap<string, Schemas['DeviceGroup']>
  exceptions: readonly Schemas['Exception'][]
  rate: (counter: string) => number | null
  words: Words
}

/** Rows that the graph shows. */
export const MOST_ROWS = 14

type Hop = Schemas['Hop']
type PathPolicy = Schemas['PathPolicy']

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

/** Name of the counter of a hop, a policy or an uplink. */
export const counterOf = {
  hop: (hop: Hop) => `hop.${hop.type}:${hop.target}`,
  policy: (id: string) => `policy.${id}`,
  uplink: (name: string) => `uplink.${name}`,
}

/** The counters of a graph, for their rates. */
export function countersOf(graph: Schemas['PathGraph']): [name: string, counters: number[]][] {
  const both = (name: string, of: { rx_bytes: number | null; tx_bytes: number | null }) =>
    of.rx_bytes === null || of.tx_bytes === null
      ? []
      : [[name, [of.rx_bytes, of.tx_bytes]] as [string, number[]]]
  return [
    ...graph.policies.flatMap((policy) =>
      policy.bytes === null ? [] : [[counterOf.policy(policy.id), [policy.bytes]] as [string, number[]]],
    ),
    ...graph.hops.flatMap((hop) => both(counterOf.hop(hop), hop)),
    ...graph.uplinks.flatMap((uplink) => both(counterOf.uplink(uplink.name), uplink)),
  ]
}

/** The state of a hop: one that policies cannot use is down, or idle when a user took it down. */
export function hopState(hop: Pick<Schemas['PathHop'], 'usable' | 'status'>): State {
  if (hop.usable) return hop.status === 'degraded' ? 'degraded' : 'ok'
  return hop.status === 'disabled' ? 'idle' : 'down'
}

export function buildFlow(input: FlowInput): Flow {
  const { graph, words } = input
  const active = graph.uplinks.find((uplink) => uplink.active)?.name ?? null
  const uplinkOf = new Map(graph.uplinks.map((uplink) => [uplink.interface, uplink.name]))
  const uplinkName = (name: string | null) => (name === null ? null : (uplinkOf.get(name) ?? name))

  const shown = shownPolicies(graph.policies)
  const rows = shown.map((policy) => policyRow(policy, input, active, uplinkName))
  if (graph.unmatched.direct > 0) rows.push(unmatchedRow(graph.unmatched.direct, 'direct', active, words))
  if (graph.unmatched.blocked > 0) rows.push(unmatchedRow(graph.unmatched.blocked, 'blocked', null, words))

  const used = new Set(rows.flatMap((row) => row.hops.map((hop) => hop.id)))
  const hops = graph.hops
    .filter((hop) => used.has(hopId(hop)))
    .map((hop): Flow['hops'][number] => {
      const state = hopState(hop)
      const rate = input.rate(counterOf.hop(hop))
      return {
        id: hopId(hop),
        name: hop.target,
        detail: hop.usable ? (rate === null ? hop.type : words.rate(rate)) : words.hopDown(hop.reason),
        state: hop.usable && hop.type === 'interface' ? 'direct' : state,
        ...hopAddress(hop),
        uplink: uplinkName(hop.uplink),
        edge: !hop.usable ? 'none' : hop.type === 'interface' ? 'direct' : 'ok',
        rate: hop.usable ? rate : null,
      }
    })
  const uplinks = graph.uplinks.map((uplink): FlowNode => {
    const rate = input.rate(counterOf.uplink(uplink.name))
    return {
      id: uplink.name,
      name: uplink.name,
      detail: [words.uplink(uplink.state, uplink.active), rate === null ? '' : words.rate(rate)]
        .filter(Boolean)
        .join(', '),
      state: uplinkState(uplink, uplink.active),
      to: `/network/interfaces/${encodeURIComponent(uplink.interface)}`,
    }
  })
  // An uplink that a hop names and that is not monitored is drawn too.
  for (const name of new Set(hops.map((hop) => hop.uplink)))
    if (name !== null && !uplinks.some((uplink) => uplink.id === name))
      uplinks.push({ id: name, name, detail: '', state: 'unknown', to: '/network' })
  return { rows, hops, uplinks, hidden: graph.policies.length - shown.length }
}

/** The policies that are drawn. If not all fit, those without devices are left out first; the order stays. */
function shownPolicies(policies: readonly PathPolicy[]): PathPolicy[] {
  if (policies.length <= MOST_ROWS) return [...policies]
  const busy = policies.filter((policy) => policy.devices > 0).slice(0, MOST_ROWS)
  const rest = policies.filter((policy) => policy.devices === 0).slice(0, MOST_ROWS - busy.length)
  const kept = new Set([...busy, ...rest])
  return policies.filter((policy) => kept.has(policy))
}

function hopId(hop: Hop): string {
  return `${hop.type}:${hop.target}`
}

/** Page of a hop. */
function hopAddress(hop: Schemas['PathHop']): { to: string } {
  if (hop.type === 'vpn') return { to: hop.id ? `/paths/tunnels/${hop.id}` : '/paths' }
  if (hop.type === 'proxy') return { to: hop.id ? `/paths/proxies/${hop.id}` : '/paths/proxies' }
  if (hop.type === 'interface') return { to: `/network/interfaces/${encodeURIComponent(hop.target)}` }
  return { to: '/paths' }
}

/** Page of what makes a policy. */
function policyAddress(policy: PathPolicy, device: string | undefined): Pick<FlowNode, 'to' | 'search'> {
  switch (policy.origin) {
    case 'exception':
      return device
        ? { to: `/devices/${device}`, search: { tab: 'exceptions' } }
        : { to: '/policies/exceptions' }
    case 'profile':
      return { to: `/policies/profiles/${policy.id}` }
    case 'bridge':
      return { to: `/paths/bridges/${policy.id}` }
    case 'mesh':
      return { to: '/network/mesh' }
    default:
      return { to: `/policies/${policy.id}` }
  }
}

export function uplinkState(uplink: Pick<Schemas['UplinkHealth'], 'state'>, active: boolean): State {
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
  policy: PathPolicy,
  input: FlowInput,
  active: string | null,
  uplinkName: (name: string | null) => string | null,
): PolicyRow {
  const { words } = input
  const states = new Map(input.graph.hops.map((hop) => [hopId(hop), hop]))
  const usable = policy.hops.filter((hop) => hop.usable).length
  const edge: Edge =
    policy.decision === 'block' || policy.status === 'error'
      ? 'blocked'
      : policy.decision === 'direct'
        ? 'direct'
        : 'ok'
  const chosen = policy.active_hop
  const via = new Set((policy.via ?? '').split(/\s*[,+]\s*/))
  const hops = policy.hops.map((hop) => {
    const inUse =
      edge !== 'blocked' &&
      hop.usable &&
      (via.has(hop.target) || (chosen?.type === hop.type && chosen.target === hop.target))
    return {
      id: hopId(hop),
      edge: inUse ? (hop.type === 'interface' ? 'direct' : 'ok') : ('none' as Edge),
    }
  })
  // Traffic by an interface hop is direct, and goes through that hop.
  const past = edge === 'direct' && hops.every((hop) => hop.edge === 'none')
  const rate = input.rate(counterOf.policy(policy.id))
  const exception = policy.origin === 'exception'
  const device = exception ? input.exceptions.find((each) => each.id === policy.id)?.device_id : undefined
  const details: string[] = []
  if (exception) details.push(words.exceptionUntil(policy.expires_at))
  else {
    details.push(policy.fail_policy)
    if (policy.origin !== 'policy') details.push(words.origin(policy.origin))
    if (policy.hops.length === 0) details.push(words.noHops)
    else if (edge === 'blocked') details.push(words.blocked)
    else if (usable < policy.hops.length) details.push(words.usableHops(usable, policy.hops.length))
    else if (policy.devices === 0) details.push(words.policyDevices(0))
    else if (rate !== null && rate > 0) details.push(words.rate(rate))
  }
  const uplinkOfHop = states.get(hops[0]?.id ?? '')?.uplink ?? null
  return {
    source: sourceNode(policy, input, edge, device),
    policy: {
      id: exception ? `exception.${policy.id}` : `policy.${policy.id}`,
      name: exception ? policy.name : `${policy.priority}  ${policy.name}`,
      detail: details.filter(Boolean).join(', '),
      state: edge === 'ok' && policy.status === 'degraded' ? 'degraded' : stateOf(edge),
      ...policyAddress(policy, device),
    },
    edge,
    hops,
    direct: past ? (active ?? uplinkName(uplinkOfHop)) : null,
    rate,
  }
}

function unmatchedRow(count: number, edge: Edge, active: string | null, words: Words): PolicyRow {
  return {
    source: {
      id: `none-${edge}`,
      name: words.devices(count),
      detail: words.noPolicy,
      state: stateOf(edge),
      to: '/devices',
      search: { policy: 'none' },
    },
    policy: {
      id: `p-none-${edge}`,
      name: words.noPolicyName,
      detail: edge === 'blocked' ? words.blocked : words.noPolicyDetail,
      state: stateOf(edge),
      to: '/policies',
    },
    edge,
    hops: [],
    direct: active,
    rate: null,
  }
}

function stateOf(edge: Edge): State {
  return edge === 'none' ? 'unknown' : edge
}

/** Devices whose exception has a row of its own. They are drawn there, and not at the policy that is passed by. */
function exceptedDevices({ graph, exceptions }: FlowInput): ReadonlySet<string> {
  const rows = new Set(graph.policies.filter(({ origin }) => origin === 'exception').map(({ id }) => id))
  return new Set(exceptions.filter(({ id }) => rows.has(id)).map(({ device_id }) => device_id))
}

/** The devices that a policy decides on, by the words of its source. The number is that of the daemon. */
function sourceNode(
  path: PathPolicy,
  input: FlowInput,
  edge: Edge,
  exceptionDevice: string | undefined,
): FlowNode {
  const { words } = input
  const base = {
    id: `source.${path.id}`,
    state: stateOf(edge),
    to: '/devices',
    search: { policy: path.id },
  }
  if (path.origin === 'exception') {
    const device = exceptionDevice ? input.devices.get(exceptionDevice) : undefined
    return device
      ? { ...base, name: device.name, detail: device.ips?.[0] ?? '', to: `/devices/${device.id}`, search: {} }
      : { ...base, name: words.devices(path.devices), detail: '' }
  }
  const policy = input.policies.find((each) => each.id === path.id)
  if (!policy) return { ...base, name: words.devices(path.devices), detail: '' }
  const values = policy.source_value
    .split(',')
    .map((value) => value.trim())
    .filter(Boolean)
  if (policy.source_type === 'device' || policy.source_type === 'device_group')
    return { ...base, ...deviceSource(policy.source_type, values, input) }
  const count = words.devices(path.devices)
  if (policy.source_type === 'all') return { ...base, name: words.everything, detail: count }
  return {
    ...base,
    name: values.length > 1 ? `${values[0]} +${values.length - 1}` : (values[0] ?? '-'),
    detail: `${words.source(policy.source_type, policy.source_value)}, ${count}`,
  }
}

/** A source that names devices, or groups of them. */
function deviceSource(
  type: 'device' | 'device_group',
  values: string[],
  input: FlowInput,
): Pick<FlowNode, 'name' | 'detail'> & Partial<FlowNode> {
  const { words } = input
  const groups = type === 'device_group' ? values : []
  const excepted = exceptedDevices(input)
  const ids = (
    type === 'device' ? values : [...new Set(groups.flatMap((id) => input.groups.get(id)?.members ?? []))]
  ).filter((id) => !excepted.has(id))
  const named = ids.slice(0, 2).map((id) => input.devices.get(id)?.name ?? id)
  const group = groups.length === 1 ? input.groups.get(groups[0] ?? '') : undefined
  const only = ids.length === 1 ? input.devices.get(ids[0] ?? '') : undefined
  if (ids.length === 0 && groups.length === 0) return { name: words.devices(0), detail: '' }
  if (only && !group)
    return {
      name: only.name,
      detail: only.ips?.[0] ?? only.mac ?? '',
      to: `/devices/${only.id}`,
      search: {},
    }
  return {
    name: group?.name ?? words.devices(ids.length),
    detail:
      ids.length > 2 && group
        ? words.devices(ids.length)
        : words.deviceList(named, ids.length - named.length),
  }
}
