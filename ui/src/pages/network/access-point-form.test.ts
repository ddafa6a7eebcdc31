import { describe, expect, it } from 'vitest'
import { accessPointForm, accessPointOf, isWaiting } from './access-point-form'

const tree = (value: unknown, pending_restart = false) => ({
  network: { ap: { value, source: 'stored', apply: 'restart', pending_restart } },
})

const network = { interface: 'eth1', subnet: '10.9.0.0/24', ip: '10.9.0.1' }
const radio = {
  enabled: true,
  ssid: 'home',
  security: 'wpa3',
  band: '5ghz',
  channel: 36,
  width_mhz: 80,
  country: 'DE',
  isolation: true,
  dhcp: false,
}

describe('the access point', () => {
  it('is empty without the setting, and null again', () => {
    const form = accessPointForm(tree(null))
    expect(form).toMatchObject({ interface: '', subnet: '', ip: '', enabled: false, dhcp: true })
    expect(accessPointOf(form)).toBeNull()
    expect(accessPointForm({})).toEqual(form)
  })

  it('is the same after a form, and keeps passphrases that are not typed', () => {
    const guest = {
      enabled: true,
      ssid: 'guests',
      interface: 'ap-guest',
      subnet: '10.8.0.0/24',
      ip: '10.8.0.1',
      dhcp: true,
    }
    const value = { ...network, ...radio, guest }
    const shown = { ...value, has_passphrase: true, guest: { ...guest, has_passphrase: true } }
    const form = accessPointForm(tree(shown))
    expect(accessPointOf(form)).toEqual(value)
    expect(accessPointOf({ ...form, passphrase: 'correct horse' })).toEqual({
      ...value,
      passphrase: 'correct horse',
    })
    expect(accessPointOf({ ...form, guest_passphrase: null })?.guest).toEqual({ ...guest, passphrase: null })
  })

  it('loses blanks around addresses, and everything without an interface', () => {
    const form = accessPointForm(tree({ ...network, ...radio }))
    const typed = { ...form, subnet: ' 10.9.0.0/24 ', ip: '10.9.0.1 ', country: 'de', channel: '' }
    expect(accessPointOf(typed)).toMatchObject({ ...network, country: 'DE', channel: null, guest: null })
    expect(accessPointOf({ ...form, interface: '' })).toBeNull()
  })

  it('says whether the setting waits for a start', () => {
    expect(isWaiting(tree(null, true))).toBe(true)
    expect(isWaiting(tree(null))).toBe(false)
    expect(isWaiting({})).toBe(false)
  })
})
