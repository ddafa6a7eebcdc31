import { describe, expect, it } from 'vitest'
import { accessPointForm, accessPointOf, isWaiting } from './access-point-form'

const tree = (value: unknown, pending_restart = false) => ({
  network: { ap: { value, source: 'stored', apply: 'restart', pending_restart } },
})

describe('the network of an access point', () => {
  it('is empty without the setting, and null again', () => {
    const form = accessPointForm(tree(null))
    expect(form).toEqual({ interface: '', subnet: '', ip: '' })
    expect(accessPointOf(form)).toBeNull()
    expect(accessPointForm({})).toEqual(form)
  })

  it('is the same after a form', () => {
    const value = { interface: 'eth1', subnet: '10.9.0.0/24', ip: '10.9.0.1' }
    expect(accessPointOf(accessPointForm(tree(value)))).toEqual(value)
  })

  it('loses blanks around addresses, and everything without an interface', () => {
    expect(accessPointOf({ interface: 'eth1', subnet: ' 10.9.0.0/24 ', ip: '10.9.0.1 ' })).toEqual({
      interface: 'eth1',
      subnet: '10.9.0.0/24',
      ip: '10.9.0.1',
    })
    expect(accessPointOf({ interface: '', subnet: '10.9.0.0/24', ip: '10.9.0.1' })).toBeNull()
  })

  it('says whether the setting waits for a start', () => {
    expect(isWaiting(tree(null, true))).toBe(true)
    expect(isWaiting(tree(null))).toBe(false)
    expect(isWaiting({})).toBe(false)
  })
})
