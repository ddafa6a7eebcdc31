import { describe, expect, it } from 'vitest'
import type { Schemas } from '@/api/client'
import { linesOf } from '@/components/draft-lines'
import { scopeBlocks, scopeInput } from './scope'
import { endpoint, protocolName, totalsOf } from './totals'

describe('leak monitor', () => {
  it('sums what escaped and what was stopped, without NTP', () => {
    const counters = [
      {
        policy_id: null,
        wrong_egress_packets: 1,
        escaped_packets: 2,
        bytes: 9,
        dns_bypass: 3,
        doh_hits: 0,
        stun_blocked: 0,
        ipv6_blocked: 0,
        quic_blocked: 0,
        discovery_dropped: 0,
        ntp_redirected: 100,
      },
    ]
    expect(totalsOf({ counters } as unknown as Schemas['LeakMonitor'])).toEqual({ escaped: 2, stopped: 4 })
  })

  it('writes addresses with their port', () => {
    expect(endpoint('2001:db8::1', 443)).toBe('[2001:db8::1]:443')
    expect(endpoint('192.0.2.1', 0)).toBe('192.0.2.1')
    expect(endpoint(null, 0)).toBe('-')
    expect(protocolName(17)).toBe('UDP')
    expect(protocolName(132)).toBe('132')
  })
})

describe('scope of a switch', () => {
  it('is exactly one field', () => {
    expect(scopeInput('all')).toEqual({ global: true })
    expect(scopeInput('device:1')).toEqual({ device_id: '1' })
    expect(scopeInput('class:2')).toEqual({ privacy_class: '2' })
  })

  it('takes the blocks of a device from the setting, and none while that is unknown', () => {
    expect(scopeBlocks('device:1', undefined, undefined, [])).toBeUndefined()
    const stored = { devices: { '1': { block_doh: true } }, groups: {} }
    expect(scopeBlocks('device:1', undefined, stored, [])?.block_doh).toBe(true)
    expect(scopeBlocks('device:2', undefined, stored, [])?.block_doh).toBe(false)
  })
})

describe('lists in a text area', () => {
  it('are split at lines and commas', () => {
    expect(linesOf(' a, b\n\nc ')).toEqual(['a', 'b', 'c'])
  })
})
