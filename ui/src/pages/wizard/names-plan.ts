// What the step of names and hosts changes: settings that differ from now, and a list to subscribe.

import type { Schemas } from '@/api/client'
import type { Treatment } from '@/components/hosts/stranger-choice'

type Preset = Pick<Schemas['DnsPreset'], 'id' | 'name' | 'upstreams' | 'mode' | 'tls_name'>

/** Lists that are offered, by the key of their words. They are downloaded only if one is chosen. */
export const LISTS = {
  hageziLight: 'https://raw.githubusercontent.com/hagezi/dns-blocklists/main/adblock/light.txt',
  hageziNormal: 'https://raw.githubusercontent.com/hagezi/dns-blocklists/main/adblock/multi.txt',
  stevenBlack: 'https://raw.githubusercontent.com/StevenBlack/hosts/master/hosts',
} as const
export type ListKey = keyof typeof LISTS

/** Names of the lists in the gateway. */
export const LIST_NAMES: Record<ListKey, string> = {
  hageziLight: 'HaGeZi Light',
  hageziNormal: 'HaGeZi Normal',
  stevenBlack: 'StevenBlack',
}

/** Presets that are offered first. The others are in a list. */
export const FIRST_PRESETS = ['Quad9', 'Mullvad DNS', 'Cloudflare']

/** How the gateway is set now. */
export interface Now {
  servers: readonly string[]
  tlsNames: Readonly<Record<string, string>>
  filtering: boolean
  strangers: Treatment
}

export interface Choice {
  /** `keep`, `own`, or the id of a preset. */
  resolver: string
  /** Addresses that were typed, for `own`. */
  own: readonly string[]
  withList: boolean
  strangers: Treatment
}

/** The settings to change, by their keys. */
export function settingsOf(choice: Choice, now: Now, presets: readonly Preset[]): Record<string, unknown> {
  const changes: Record<string, unknown> = {}
  const preset = presets.find((each) => each.id === choice.resolver)
  if (preset) {
    const { tls_name } = preset
    changes['dns.upstream_servers'] = preset.upstreams
    changes['dns.upstream_mode'] = preset.mode
    if (tls_name !== null)
      changes['dns.upstream_tls_names'] = {
        ...now.tlsNames,
        ...Object.fromEntries(preset.upstreams.map((address) => [address, tls_name])),
      }
  } else if (choice.resolver === 'own') {
    changes['dns.upstream_servers'] = choice.own
    changes['dns.upstream_mode'] = 'plain'
  }
  if (choice.withList && !now.filtering) changes['dns.filtering_enabled'] = true
  if (choice.strangers !== now.strangers) changes['network.unknown_hosts'] = choice.strangers
  return changes
}
