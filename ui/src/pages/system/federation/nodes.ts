// The other gateways of the federation, and what a form of one has.

import type { Schemas } from '@/api/client'
import { linesOf } from '@/components/draft-lines'
import { resource } from '@/components/resource'
import type { State } from '@/components/state'

export type Node = Schemas['Node']

const SEPARATOR = ' = '

/** Names of interfaces at the node and here, a pair on each line. */
export function mapLines(map: Record<string, string>): string[] {
  return Object.entries(map).map((pair) => pair.join(SEPARATOR))
}

/** The pairs of lines such as `lan0 = br-lan`. A line without a second name stays, for the gateway to refuse. */
export function mapOf(lines: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    lines.map((line) => {
      const [there = '', ...here] = line.split('=')
      return [there.trim(), here.join('=').trim()]
    }),
  )
}

export const nodes = resource('/nodes/{id}', {
  key: 'node',
  fields: (node: Node | null) => ({
    name: node?.name ?? '',
    url: node?.url ?? '',
    public_key: node?.public_key ?? null,
    role: node?.role ?? 'observer',
    sync_policy: node?.sync_policy ?? 'none',
    sync_resources: linesOf(node?.sync_resources ?? ''),
    allowed_receive_resources: linesOf(node?.allowed_receive_resources ?? ''),
    interface_map: mapLines(node?.interface_map ?? {}),
    ca_certificate: node?.ca_certificate ?? '',
  }),
  body: (fields) => ({
    ...fields,
    sync_resources: fields.sync_resources.join(','),
    allowed_receive_resources: fields.allowed_receive_resources.join(','),
    interface_map: mapOf(fields.interface_map),
  }),
})

export type NodeFields = ReturnType<typeof nodes.fields>

export const STATES: Record<Schemas['NodeStatus'], State> = {
  pending: 'degraded',
  approved: 'unknown',
  connected: 'ok',
  unreachable: 'down',
  rejected: 'idle',
  revoked: 'idle',
}
