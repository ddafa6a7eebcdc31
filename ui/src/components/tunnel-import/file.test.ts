import { describe, expect, it } from 'vitest'
import { freeName, kindOf, nameFromFile } from './file'

describe('files of VPN providers', () => {
  it('are of one kind or none', () => {
    expect(kindOf('# a comment\n[Interface]\nPrivateKey = a\n')).toBe('wireguard')
    expect(kindOf('client\ndev tun\nremote vpn.example 1194\n')).toBe('openvpn')
    expect(kindOf('hello')).toBeNull()
    expect(kindOf('')).toBeNull()
  })
  it('name the tunnel', () => {
    expect(nameFromFile('My VPN (Berlin).conf')).toBe('my-vpn-berlin')
    expect(nameFromFile('wg-a.ovpn')).toBe('wg-a')
    expect(nameFromFile('')).toBe('')
  })
  it('name it as no other', () => {
    expect(freeName('wg', ['dsl'])).toBe('wg')
    expect(freeName('wg', ['wg', 'wg-2'])).toBe('wg-3')
    expect(freeName('a'.repeat(32), ['a'.repeat(32)])).toBe(`${'a'.repeat(30)}-2`)
  })
})
