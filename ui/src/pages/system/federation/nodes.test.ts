import { describe, expect, it } from 'vitest'
import { mapLines, mapOf } from './nodes'

describe('names of interfaces', () => {
  it('are the same pairs as lines', () => {
    const map = { lan0: 'br-lan', 'eth0.7': 'guest' }
    expect(mapOf(mapLines(map))).toEqual(map)
  })

  it('are taken with any space around them', () => {
    expect(mapOf(['lan0=br-lan', ' eth1  =  wan '])).toEqual({ lan0: 'br-lan', eth1: 'wan' })
  })

  it('keep a line without a second name', () => {
    expect(mapOf(['lan0'])).toEqual({ lan0: '' })
  })
})
