import { describe, expect, it } from 'vitest'
import type { Schemas } from '@/api/client'
import { brushed, gapsOf, histogramOf, MINUTE, stepOf, windowOf } from './histogram'

const time = (minute: number) => new Date(minute * MINUTE).toISOString()
const minute = (at: number, queries: number, blocked = 0) => ({ at: time(at), queries, blocked, cached: 0 })
const entry = (at: number, status = 'allowed') => ({ time: time(at), status }) as Schemas['Entry']
const window = (from: number, to: number) => ({ from: from * MINUTE, to: to * MINUTE })

describe('histogram', () => {
  it('chooses steps of whole minutes', () => {
    expect(stepOf(60 * MINUTE, 120)).toBe(MINUTE)
    expect(stepOf(180 * MINUTE, 120)).toBe(2 * MINUTE)
    expect(stepOf(3 * 1440 * MINUTE, 120)).toBe(60 * MINUTE)
  })

  it('shows two hours at least, and what surrounds a range', () => {
    expect(windowOf(undefined, undefined, 1000 * MINUTE)).toEqual(window(880, 1000))
    expect(windowOf(600 * MINUTE, undefined, 1000 * MINUTE)).toEqual(window(400, 1000))
    expect(windowOf(600 * MINUTE, 660 * MINUTE, 1000 * MINUTE)).toEqual(window(570, 690))
    expect(windowOf(600 * MINUTE, 2000 * MINUTE, 1000 * MINUTE).to).toBe(1000 * MINUTE)
  })

  it('counts all queries by the minutes of the daemon and the loaded ones by entries', () => {
    const histogram = histogramOf(
      [minute(10, 5, 2), minute(12, 1)],
      [entry(12.5), entry(10.2, 'blocked')],
      window(10, 13),
    )
    expect(histogram.steps.map(({ all, loaded }) => [all?.queries, loaded.queries, loaded.blocked])).toEqual([
      [5, 1, 1],
      [undefined, 0, 0],
      [1, 1, 0],
    ])
    expect(histogram.most).toBe(5)
  })

  it('tells no data from no queries', () => {
    const { steps } = histogramOf([minute(10, 0), minute(13, 1)], [], window(10, 15))
    expect(gapsOf(steps)).toEqual([
      [1, 3],
      [4, 5],
    ])
  })

  it('gives whole steps for a drag in either direction', () => {
    const histogram = histogramOf([], [], window(10, 14))
    expect(brushed(histogram, 0.6, 0.3)).toEqual(window(11, 13))
    expect(brushed(histogram, -1, 2)).toEqual(window(10, 14))
  })
})
