import { describe, expect, it } from 'vitest'
import { bandsOf, buckets, lastMinutes } from './minutes'

const at = (minute: number) => new Date(minute * 60_000).toISOString()

describe('lastMinutes', () => {
  it('leaves gaps for minutes that were not recorded, and leaves out the present one', () => {
    const minutes = [97, 99, 100].map((minute) => ({ at: at(minute), n: minute }))
    expect(lastMinutes(minutes, 4, 100.5 * 60_000, (minute) => minute.n)).toEqual([null, 97, null, 99])
  })
  it('has only gaps without any minute', () => {
    expect(lastMinutes([], 2, 0, () => 1)).toEqual([null, null])
  })
})

describe('buckets', () => {
  it('takes means, and null for a bucket without a minute', () => {
    const minutes = [
      { at: at(0), n: 2 },
      { at: at(1), n: 4 },
      { at: at(10), n: 6 },
    ]
    expect(buckets(minutes, 5, 11 * 60_000, (minute) => [minute.n])).toEqual([
      { time: 0, means: [3] },
      { time: 300, means: [null] },
      { time: 600, means: [6] },
    ])
  })
  it('leaves out the present minute', () => {
    expect(buckets([{ at: at(3), n: 1 }], 1, 3.5 * 60_000, (minute) => [minute.n])).toEqual([])
  })
})

describe('bandsOf', () => {
  const span = (from: number, to: number, state: string, active = false) => ({
    from: at(from),
    to: at(to),
    state,
    active,
  })
  it('draws each span by its state, never a state that is not known as active', () => {
    const bands = bandsOf(
      [
        span(0, 50, 'online', true),
        span(50, 60, 'offline'),
        span(60, 80, 'degraded', true),
        span(80, 100, 'online'),
      ],
      0,
      100 * 60_000,
      200,
    )
    expect(bands.map(({ kind, x, width }) => [kind, x, width])).toEqual([
      ['ok', 0, 99],
      ['off', 100, 19],
      ['dg', 120, 39],
      ['sb', 160, 39],
    ])
  })
  it('keeps a short span visible and inside', () => {
    const [band] = bandsOf([span(99.99, 100, 'offline')], 0, 100 * 60_000, 200)
    expect(band).toMatchObject({ x: 198, width: 2 })
  })
})
