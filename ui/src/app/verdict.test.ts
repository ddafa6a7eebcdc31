import { describe, expect, it } from 'vitest'
import { isFresh, steadyPart } from './verdict'

describe('an answer', () => {
  it('says nothing any more after ten seconds', () => {
    expect(isFresh(5_000, 14_999)).toBe(true)
    expect(isFresh(5_000, 15_000)).toBe(false)
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
