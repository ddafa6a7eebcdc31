import { describe, expect, it } from 'vitest'
import type { Schemas } from '@/api/client'
import { brushed, histogramOf, stepOf } from './histogram'

const at = (second: number, status = 'allowed') =>
  ({ time: new Date(second * 1000).toISOString(), status }) as Schemas['Entry']

describe('histogram', () => {
  it('chooses steps of a readable length', () => {
    expect(stepOf(100_000, 120)).toBe(1000)
    expect(stepOf(7_200_000, 120)).toBe(60_000)
  })

  it('counts queries and blocked ones by step, with empty steps between', () => {
    const histogram = histogramOf([at(12), at(10, 'blocked'), at(10)], undefined)
    expect(histogram?.steps.map(({ queries, blocked }) => [queries, blocked])).toEqual([
      [2, 1],
      [0, 0],
      [1, 0],
    ])
    expect(histogram?.most).toBe(2)
  })

  it('has nothing to show without entries', () => {
    expect(histogramOf([], undefined)).toBeNull()
  })

  it('gives whole steps for a drag in either direction', () => {
    const histogram = histogramOf([at(13), at(10)], undefined)
    if (!histogram) throw new Error('there are entries')
    expect(brushed(histogram, 0.6, 0.3)).toEqual({ from: 11_000, to: 13_000 })
    expect(brushed(histogram, -1, 2)).toEqual({ from: 10_000, to: 14_000 })
  })
})
