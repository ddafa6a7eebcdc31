import { describe, expect, it } from 'vitest'
import { linesOf } from './minutes'

const minute = (at: number, queries: number) => ({
  at: new Date(at * 60_000).toISOString(),
  queries,
  blocked: 0,
  cached: 0,
})

describe('history of the resolver', () => {
  it('has a gap where minutes are missing, and leaves out the minute that is not over', () => {
    const lines = linesOf([minute(10, 4), minute(12, 6), minute(13, 1)], 13.5 * 60_000)
    expect(lines.times).toEqual([600, 660, 720])
    expect(lines.queries).toEqual([4, null, 6])
  })

  it('takes means of several minutes', () => {
    const lines = linesOf([minute(10, 4), minute(11, 6), minute(15, 2)], 20 * 60_000, 5)
    expect(lines.times).toEqual([600, 900])
    expect(lines.queries).toEqual([5, 2])
  })

  it('is empty without minutes', () => {
    expect(linesOf([], 0).times).toEqual([])
  })
})
