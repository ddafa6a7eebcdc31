// The blocks of a scope: everyone, a privacy class, a group or a device. In the address a scope is `class:ID`.

import type { Schemas } from '@/api/client'

export type Blocks = Pick<
  Schemas['HostBlocks'],
  'force_dns' | 'force_ntp' | 'block_doh' | 'block_dot' | 'block_quic' | 'block_ipv6' | 'webrtc'
>

const NONE: Blocks = {
  force_dns: false,
  force_ntp: false,
  block_doh: false,
  block_dot: false,
  block_quic: false,
  block_ipv6: false,
  webrtc: 'off',
}

/** The scope of a change, as the API takes it. */
export function scopeInput(scope: string): Schemas['SwitchScopeInput'] {
  const [kind, id] = scope.split(':')
  if (kind === 'class') return { privacy_class: id }
  if (kind === 'group') return { group: id }
  if (kind === 'device') return { device_id: id }
  return { global: true }
}

/** What a scope itself sets. Undefined while that is not read. */
export function scopeBlocks(
  scope: string,
  everyone: Schemas['PrivacyStatus'] | undefined,
  stored: unknown,
  classes: Schemas['PrivacyClass'][],
): Blocks | undefined {
  const [kind, id = ''] = scope.split(':')
  if (kind === 'class') return classes.find((each) => each.id === id)
  if (kind !== 'group' && kind !== 'device') return everyone
  if (stored === undefined || stored === null) return undefined
  const all = (stored as Partial<Record<string, Partial<Record<string, Partial<Blocks>>>>>)[
    kind === 'group' ? 'groups' : 'devices'
  ]
  return { ...NONE, ...all?.[id] }
}
