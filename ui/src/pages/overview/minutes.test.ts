import { describe, expect, it } from 'vitest'
import { bandsOf, untilNow, buckets, lastMinutes } from './minutes'

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
  it('draws an uplink that is not probed yet as one that is off', () => {
    const [band] = bandsOf([span(0, 1, 'connecting', true)], 0, 60_000, 200)
    expect(band?.kind).toBe('off')
  })
  it('keeps a short span visible and inside', () => {
    const [band] = bandsOf([span(99.99, 100, 'offline')], 0, 100 * 60_000, 200)
    expect(band).toMatchObject({ x: 198, width: 2 })
  })
})

describe('untilNow', () => {
  const span = (from: number, to: number, state: string, active: boolean) => ({
    from: at(from),
    to: at(to),
    state,
    active,
  })
  const known = [span(0, 10, 'connecting', false), span(10, 60, 'online', true)]
  it('does not let a line that is down look as it was at the last read of its history', () => {
    const present = { state: 'offline', active: false, since: at(59), at: at(62) }
    expect(untilNow(known, present)).toEqual([
      span(0, 10, 'connecting', false),
      span(10, 59, 'online', true),
      span(59, 62, 'offline', false),
    ])
  })
  it('goes on with the same state', () => {
    const present = { state: 'online', active: true, since: at(10), at: at(62) }
    expect(untilNow(known, present)).toEqual([
      known[0],
      span(10, 60, 'online', true),
      span(60, 62, 'online', true),
    ])
  })
  it('shows another role from the last read on', () => {
    const present = { state: 'online', active: false, since: at(10), at: at(62) }
    expect(untilNow(known, present).at(-1)).toEqual(span(60, 62, 'online', false))
  })
  it('needs a history and a time', () => {
    expect(untilNow([], { state: 'online', active: true, since: null, at: at(1) })).toEqual([])
    expect(untilNow(known, { state: 'online', active: true, since: null, at: null })).toEqual(known)
  })
})
