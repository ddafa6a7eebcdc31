// What policies do, in states: cells of the leak matrix, hops, changes that are not active yet.

import type { Schemas } from '@/api/client'
import type { State } from '@/components/state'
import type { Joining } from '@/components/path'

export type Policy = Schemas['RoutingPolicy']
export type PolicyInput = Schemas['RoutingPolicyInput']
export type Hop = Schemas['Hop']
export type FailPolicy = Schemas['FailPolicy']
export type Outcome = Schemas['Outcome']
export type Cell = Schemas['Cell']
export type LeakMatrix = Schemas['LeakMatrix']
export type LeakRow = Schemas['LeakRow']
export type UnrecordedRow = Schemas['UnrecordedRow']
export type Enforced = Schemas['PolicyEnforcement']

/** The fields of a policy that may be written. */
export function inputOf(policy: Policy): Required<Omit<PolicyInput, 'ended_at'>> {
  const { name, description, priority, enabled, source_type, source_value, hops, splitting } = policy
  const { fail_policy, reject, sticky, hop_mode, expires_at, profile, chain, privacy_class } = policy
  return {
    name,
    description,
    priority,
    enabled,
    source_type,
    source_value,
    hops,
    splitting,
    fail_policy,
    reject,
    sticky,
    hop_mode,
    expires_at,
    profile,
    chain,
    privacy_class,
  }
}

export type Draft = ReturnType<typeof inputOf>

export const EMPTY: Draft = {
  name: '',
  description: '',
  priority: 1000,
  enabled: true,
  source_type: 'device',
  source_value: '',
  hops: [],
  splitting: false,
  fail_policy: 'fail-closed',
  reject: 'unreachable',
  sticky: 'flow',
  hop_mode: 'path',
  expires_at: null,
  profile: null,
  chain: null,
  privacy_class: null,
}

/** The order in which policies are tried: priority, then age. */
export function inOrder(policies: readonly Policy[]): Policy[] {
  return [...policies].sort(
    (one, other) =>
      one.priority - other.priority ||
      one.created_at.localeCompare(other.created_at) ||
      one.id.localeCompare(other.id),
  )
}

/** How several hops belong together. */
export type HopUse = 'path' | 'failover' | 'split'

export function hopUse(way: { splitting?: boolean; hop_mode?: string }): HopUse {
  return way.splitting ? 'split' : way.hop_mode === 'failover' ? 'failover' : 'path'
}

export const JOINING: Record<HopUse, Joining> = { path: 'line', failover: 'or', split: 'split' }

/** The state of a cell. Red is only for traffic that leaves although the policy forbids it. */
export function stateOf(cell: Cell, row: Pick<LeakRow, 'fail_policy' | 'risk'>): State {
  if (cell.leak && row.fail_policy !== 'fail-open' && row.risk === 'high') return 'leak'
  if (cell.outcome === 'direct') return 'direct'
  return cell.outcome === 'blocked' ? 'blocked' : 'ok'
}

/** Columns of single hops, where the daemon has them. */
export interface HopColumn {
  state: string
  target: string
}

export function hopColumns(matrix: LeakMatrix): HopColumn[] {
  return (matrix as { hops?: HopColumn[] }).hops ?? []
}

export function cellOf(row: Pick<LeakRow, 'cells'>, state: string): Cell | undefined {
  return (row.cells as Record<string, Cell>)[state]
}

export function sameCell(one: Cell | undefined, other: Cell | undefined): boolean {
  return one?.outcome === other?.outcome && one?.via === other?.via && one?.leak === other?.leak
}

/** What is saved and not active of a policy. */
export type Waiting = 'new' | 'edited' | 'off' | 'removed'

export interface Pending {
  id: string
  name: string
  kind: Waiting
  stored: Policy | undefined
  /** The policy at work; undefined if it is disabled or not applied. */
  applied: Enforced | undefined
  /** Fields from the applied value to the stored one. */
  diff: Schemas['ItemChange']['diff']
}

/** The policies that the next apply changes, in the order in which they are tried. */
export function pendingOf(
  policies: readonly Policy[],
  enforced: readonly Enforced[],
  changes: readonly Schemas['ItemChange'][],
): Pending[] {
  const order = inOrder(policies)
  const found = changes.map(({ id, name, op, diff }): Pending => {
    const stored = policies.find((policy) => policy.id === id)
    const applied = enforced.find((each) => each.id === id)
    return { id, name, kind: kindOf(op, stored, applied), stored, applied, diff }
  })
  const place = ({ stored }: Pending) => (stored ? order.indexOf(stored) : order.length)
  return found.sort((one, other) => place(one) - place(other))
}

function kindOf(op: string, stored: Policy | undefined, applied: Enforced | undefined): Waiting {
  if (op === 'delete') return 'removed'
  if (op === 'create') return 'new'
  if (applied && stored?.enabled === false) return 'off'
  return !applied && stored?.enabled === true ? 'new' : 'edited'
}

/** Reports whether a policy neither steers traffic now nor after an apply. */
export function isIdle({ stored, applied }: Pending): boolean {
  return !applied && stored?.enabled !== true
}

/** Fields that differ between the applied policy and the stored one. */
export function fieldsOf({ diff }: Pending): { field: string; from: unknown; to: unknown }[] {
  return Object.entries(diff).map(([field, { from, to }]) => ({ field, from, to }))
}

/** The action of a policy in the compiled rules. */
export interface Rule {
  name: string
  priority: number
  fail: string
  action: string
}

/** Reads a line of the compiled rules: `policy #0 "a" (priority 10, fail-closed): IPv4 leg 16 (wg-a); IPv6 reject`. */
export function readRule(line: string): Rule | null {
  const found = /^policy #\d+ ("(?:[^"\\]|\\.)*") \(priority (\d+), ([a-z-]+)\): IPv4 (.*); IPv6 (.*)$/.exec(
    line,
  )
  if (!found) return null
  const [, name = '""', priority = '0', fail = '', four = '', six = ''] = found
  return {
    name: unquote(name),
    priority: Number(priority),
    fail,
    action: four === six ? four : `${four}; IPv6 ${six}`,
  }
}

function unquote(text: string): string {
  try {
    return JSON.parse(text) as string
  } catch {
    return text.slice(1, -1)
  }
}

/** Legs below this number are uplinks. */
const FIRST_TUNNEL = 16

/** The state of an action: `leg 16 (wg-a)`, `reject`, `drop`, `direct`. */
export function stateOfAction(action: string): State {
  if (action.startsWith('direct') || action.includes('default route')) return 'direct'
  const legs = [...action.matchAll(/leg (\d+)/g)].map((found) => Number(found[1]))
  if (legs.length > 0 && !action.includes('proxy') && legs.every((leg) => leg < FIRST_TUNNEL)) return 'direct'
  return action.startsWith('reject') || action.startsWith('drop') ? 'blocked' : 'ok'
}

/** The names in an action: `wg-a, wg-b`. Interfaces of tunnels have the prefix of their kind. */
export function viaOfAction(action: string): string {
  return [...action.matchAll(/leg \d+ \((?:wg-|ovpn-)?([^)]+)\)|proxy \d+ \(([^)]+)\)/g)]
    .map((found) => found[1] ?? found[2] ?? '')
    .join(', ')
}

/** How many devices a source names; null where the daemon does not say. */
export function devicesOf(
  source: Pick<Policy, 'source_type' | 'source_value'>,
  groups: readonly Schemas['DeviceGroup'][],
): string[] | null {
  const values = valuesOf(source.source_value)
  if (source.source_type === 'device') return values
  if (source.source_type !== 'device_group') return null
  const members = groups.filter((group) => values.includes(group.id) || values.includes(group.name))
  return [...new Set(members.flatMap((group) => group.members))]
}

/** The values of a comma list. A regular expression takes the rest, commas included. */
export function valuesOf(list: string): string[] {
  const expression = list.search(/(^|,)\s*~/)
  const head = expression < 0 ? list : list.slice(0, expression)
  const values = head
    .split(',')
    .map((value) => value.trim())
    .filter(Boolean)
  if (expression >= 0) values.push(list.slice(expression).replace(/^,/, '').trim())
  return values
}
