import { describe, expect, it } from 'vitest'
import { commandOf, packetOf, quoted } from './query'

describe('packetOf', () => {
  it('reads an address', () => {
    expect(packetOf('d', { to: ' 192.0.2.1 ', port: '53', protocol: 'udp', family: 'ipv4' })).toEqual({
      device_id: 'd',
      destination: '192.0.2.1',
      port: 53,
      protocol: 'udp',
      family: 'ipv4',
    })
  })
  it('asks as of a time, unless it is none', () => {
    const at = '2026-11-30T10:00:00.25Z'
    expect(packetOf('d', { at })).toEqual({ device_id: 'd', at })
    expect(packetOf('d', { at: 'then' })).toEqual({ device_id: 'd' })
  })
  it('takes a domain as a destination and leaves out what makes no sense', () => {
    expect(packetOf('d', { domain: 'example.com', port: '70000', protocol: 'quic', family: '4' })).toEqual({
      device_id: 'd',
      destination: 'example.com',
    })
  })
})

describe('commandOf', () => {
  it('uses the client for a device alone, the API for a packet', () => {
    expect(commandOf({ device_id: 'd' }, 'laptop', 'http://gw')).toBe('gateway-ctl evaluate laptop')
    expect(commandOf({ device_id: 'd', port: 53 }, 'laptop', 'http://gw')).toContain(
      `-d '{"device_id":"d","port":53}'`,
    )
  })
  it('quotes names for the shell', () => {
    expect(quoted("mara's tv; rm")).toBe(`'mara'\\''s tv; rm'`)
  })
})
