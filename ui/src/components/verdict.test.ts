import { describe, expect, it } from 'vitest'
import { isFresh, stateOf, steadyPart } from './verdict'

describe('an answer', () => {
  it('says nothing any more after ten seconds', () => {
    expect(isFresh(5_000, 14_999)).toBe(true)
    expect(isFresh(5_000, 15_000)).toBe(false)
  })
})

describe('a verdict', () => {
  it('is amber if it is OK for a share of the hosts only', () => {
    expect(stateOf('OK', null)).toBe('ok')
    expect(stateOf('OK', { covered: 2, total: 5 })).toBe('direct')
    expect(stateOf('BLOCKED', { covered: 2, total: 5 })).toBe('blocked')
    expect(stateOf('UNKNOWN', null)).toBe('unknown')
  })
})

describe('the steady part of a sentence', () => {
  it('has no durations and counts of packets, and keeps counts of devices', () => {
    expect(steadyPart('Of 3 devices 1 is cut off: tunnel wg-a is down (no handshake for 3m 12s).')).toBe(
      steadyPart('Of 3 devices 1 is cut off: tunnel wg-a is down (no handshake for 4m 2s).'),
    )
    expect(steadyPart('LEAK: 3 packets left.')).toBe(steadyPart('LEAK: 41 packets left.'))
    expect(steadyPart('2 devices leave directly.')).not.toBe(steadyPart('3 devices leave directly.'))
  })
})
