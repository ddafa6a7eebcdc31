// The setting `network.ap` as a form, and back.

import { settingOf } from './ipv6-form'

export type AccessPointForm = {
  interface: string
  subnet: string
  ip: string
  enabled: boolean
  ssid: string
  /** Empty: the stored one stays. */
  passphrase: string | null
  has_passphrase: boolean
  security: string
  country: string
  band: string
  channel: string
  width_mhz: string
  isolation: boolean
  dhcp: boolean
  guest_enabled: boolean
  guest_ssid: string
  guest_passphrase: string | null
  has_guest_passphrase: boolean
  /** Not shown: kept as it is. */
  guest_interface: string
  guest_subnet: string
  guest_ip: string
  guest_dhcp: boolean
}

type Tree = Readonly<Record<string, unknown>>

const objectOf = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}

/** The form of the setting; without an interface there is no access point. */
export function accessPointForm(tree: Tree): AccessPointForm {
  const value = objectOf(settingOf(tree, 'network.ap'))
  const guest = objectOf(value.guest)
  const text = (of: Tree, field: string, standard = '') =>
    typeof of[field] === 'string' || typeof of[field] === 'number' ? String(of[field]) : standard
  const flag = (of: Tree, field: string, standard = false) =>
    typeof of[field] === 'boolean' ? of[field] : standard
  return {
    interface: text(value, 'interface'),
    subnet: text(value, 'subnet'),
    ip: text(value, 'ip'),
    enabled: flag(value, 'enabled'),
    ssid: text(value, 'ssid'),
    passphrase: '',
    has_passphrase: flag(value, 'has_passphrase'),
    security: text(value, 'security', 'wpa2-wpa3'),
    country: text(value, 'country'),
    band: text(value, 'band', '2.4ghz'),
    channel: text(value, 'channel'),
    width_mhz: text(value, 'width_mhz', '20'),
    isolation: flag(value, 'isolation'),
    dhcp: flag(value, 'dhcp', true),
    guest_enabled: value.guest != null && flag(guest, 'enabled', true),
    guest_ssid: text(guest, 'ssid'),
    guest_passphrase: '',
    has_guest_passphrase: flag(guest, 'has_passphrase'),
    guest_interface: text(guest, 'interface', 'ap-guest'),
    guest_subnet: text(guest, 'subnet'),
    guest_ip: text(guest, 'ip'),
    guest_dhcp: flag(guest, 'dhcp', true),
  }
}

/** A secret that is left empty is not sent, so that the stored one stays. */
const secretOf = (text: string | null) => (text === '' ? {} : { passphrase: text })

/** The value of the setting: null without an interface. */
export function accessPointOf(form: AccessPointForm) {
  if (form.interface === '') return null
  const hasGuest = form.guest_enabled || form.guest_ssid !== '' || form.has_guest_passphrase
  return {
    interface: form.interface,
    subnet: form.subnet.trim(),
    ip: form.ip.trim(),
    enabled: form.enabled,
    ssid: form.ssid,
    ...secretOf(form.passphrase),
    security: form.security,
    band: form.band,
    channel: form.channel.trim() === '' ? null : Number(form.channel),
    width_mhz: Number(form.width_mhz),
    country: form.country.trim() === '' ? null : form.country.trim().toUpperCase(),
    isolation: form.isolation,
    dhcp: form.dhcp,
    guest: hasGuest
      ? {
          enabled: form.guest_enabled,
          ssid: form.guest_ssid,
          ...secretOf(form.guest_passphrase),
          interface: form.guest_interface,
          subnet: form.guest_subnet.trim(),
          ip: form.guest_ip.trim(),
          dhcp: form.guest_dhcp,
        }
      : null,
  }
}

/** The setting waits for the next start of the daemon. */
export function isWaiting(tree: Tree): boolean {
  const network = tree.network as Record<string, { pending_restart?: unknown }> | undefined
  return network?.ap?.pending_restart === true
}
