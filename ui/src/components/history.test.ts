import { describe, expect, it } from 'vitest'
import { History, latest, rateBetween } from './history'

describe('rates', () => {
  it('are differences per second', () => {
    expect(rateBetween({ time: 1000, counters: [100, 10] }, { time: 3000, counters: [300, 10] })).toEqual({
      time: 3000,
      rates: [100, 0],
    })
  })
  it('are unknown when a counter begins again', () => {
    expect(rateBetween({ time: 0, counters: [100] }, { time: 1000, counters: [5] })).toBeNull()
  })
})

describe('History', () => {
  it('needs two reads, and leaves out those that are too close', () => {
    const history = new History()
    history.add(1000, [['a', [0]]])
    expect(history.of('a')).toEqual([])
    history.add(1100, [['a', [50]]])
    expect(history.of('a')).toEqual([])
    history.add(3000, [['a', [200]]])
    expect(history.of('a')).toEqual([{ time: 3000, rates: [100] }])
  })
  it('has no rate from long ago', () => {
    expect(latest([{ time: 0, rates: [1] }], 60_000)).toBeNull()
    expect(latest([{ time: 50_000, rates: [1] }], 60_000)).toEqual([1])
  })
})
