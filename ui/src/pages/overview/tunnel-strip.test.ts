import { describe, expect, it } from 'vitest'
import { ratePair } from './tunnel-strip'

describe('ratePair', () => {
  it('says the unit once if both have it', () => {
    expect(ratePair(3_675_000, 200_000)).toBe('29.4 / 1.6 Mbit/s')
    expect(ratePair(3_675_000, 2000)).toBe('29.4 Mbit/s / 16 kbit/s')
    expect(ratePair(0, 0)).toBe('0 / 0 bit/s')
  })
})
