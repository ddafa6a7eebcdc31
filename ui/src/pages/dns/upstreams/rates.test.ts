import { describe, expect, it } from 'vitest'
import { add, ratesOf, type Reading } from './rates'
import { settingsBelow } from './setting-rows'

const reading = (at: number, queries: number): Reading => ({ at, queries, blocked: 0, hits: 0 })

describe('rates', () => {
  it('adds a reading once', () => {
    const one = add([], reading(1000, 1))
    expect(add(one, reading(1000, 1))).toBe(one)
  })

  it('gives rates between readings, and none where a counter went back or a pause was long', () => {
    const rates = ratesOf([reading(0, 0), reading(5000, 10), reading(10_000, 3), reading(100_000, 9)])
    expect(rates.times).toEqual([5, 10, 100])
    expect(rates.queries).toEqual([2, null, null])
  })
})

describe('settings as rows', () => {
  it('walks the tree and shows nothing as a dash', () => {
    const leaf = (value: unknown) => ({ value, source: 'default', apply: 'live', pending_restart: false })
    const rows = settingsBelow(
      { dns: { one: leaf([]), two: { three: leaf(5) } }, log: { level: leaf('x') } },
      'dns',
    )
    expect(rows.map(({ key, value }) => [key, value])).toEqual([
      ['dns.one', '-'],
      ['dns.two.three', '5'],
    ])
  })
})
