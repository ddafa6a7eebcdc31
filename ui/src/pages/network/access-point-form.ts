// The setting `network.ap` as a form, and back.

import { settingOf } from './ipv6-form'

export type AccessPointForm = { interface: string; subnet: string; ip: string }

type Tree = Readonly<Record<string, unknown>>

/** The form of the setting; without an interface there is no access point. */
export function accessPointForm(tree: Tree): AccessPointForm {
  const found = settingOf(tree, 'network.ap')
  const value = typeof found === 'object' && found !== null ? (found as Record<string, unknown>) : {}
  const text = (field: string) => (typeof value[field] === 'string' ? value[field] : '')
  return { interface: text('interface'), subnet: text('subnet'), ip: text('ip') }
}

/** The value of the setting: null without an interface. */
export function accessPointOf(form: AccessPointForm) {
  if (form.interface === '') return null
  return { interface: form.interface, subnet: form.subnet.trim(), ip: form.ip.trim() }
}

/** The setting waits for the next start of the daemon. */
export function isWaiting(tree: Tree): boolean {
  const network = tree.network as Record<string, { pending_restart?: unknown }> | undefined
  return network?.ap?.pending_restart === true
}
