// The settings of IPv6, out of the tree of all settings.

export type Ipv6Form = {
  enabled: boolean
  delegation: boolean
  trust_delegation: boolean
  prefix: string
  rdnss: string
  mtu: string
  lifetime_sec: string
}

/** The value of a key in the tree of settings, whose leaves are `{value, source, apply, …}`. */
export function settingOf(tree: Readonly<Record<string, unknown>>, key: string): unknown {
  let at: unknown = tree
  for (const part of key.split('.')) {
    if (typeof at !== 'object' || at === null) return undefined
    at = (at as Record<string, unknown>)[part]
  }
  return typeof at === 'object' && at !== null ? (at as Record<string, unknown>).value : undefined
}

export function settingsForm(tree: Readonly<Record<string, unknown>>): Ipv6Form {
  const value = (field: string) => settingOf(tree, `network.ipv6.${field}`)
  const text = (field: string) => {
    const found = value(field)
    return typeof found === 'string' || typeof found === 'number' ? String(found) : ''
  }
  const list = value('rdnss')
  return {
    enabled: value('enabled') === true,
    delegation: value('delegation') === true,
    trust_delegation: value('trust_delegation') === true,
    prefix: text('prefix'),
    rdnss: Array.isArray(list) ? list.map(String).join(', ') : '',
    mtu: text('mtu'),
    lifetime_sec: text('lifetime_sec'),
  }
}
