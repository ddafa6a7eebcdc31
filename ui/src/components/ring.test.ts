import { describe, expect, it } from 'vitest'
import { shortTime } from './ring'

describe('shortTime', () => {
  it('fits into a ring', () => {
    expect([4.2, 61, 5400, 86_400].map(shortTime)).toEqual(['5s', '2m', '90m', '24h'])
  })
})
