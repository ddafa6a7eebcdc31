import { describe, expect, it } from 'vitest'
import { latest, ratesOf, withSample } from './rates'

const sample = (at: number, received: number, sent: number) => ({ at, received, sent })

describe('rates of a tunnel', () => {
  it('are the differences of successive reads', () => {
    const rates = ratesOf([sample(0, 100, 10), sample(3000, 400, 40), sample(6000, 400, 70)])
    expect(rates).toEqual({ times: [3, 6], received: [100, 0], sent: [10, 10] })
  })

  it('have a gap where the counters started again', () => {
    const rates = ratesOf([sample(0, 100, 10), sample(3000, 20, 40)])
    expect(rates.received).toEqual([null])
    expect(rates.sent).toEqual([null])
  })

  it('have a gap where no read succeeded for a minute', () => {
    expect(ratesOf([sample(0, 100, 10), sample(90_000, 400, 40)]).received).toEqual([null])
  })

  it('need two samples', () => {
    expect(latest(ratesOf([sample(0, 1, 1)]).received)).toBeNull()
  })
})

it('a sample of the same read is left out', () => {
  const samples = withSample([], sample(1000, 1, 1))
  expect(withSample(samples, sample(1000, 1, 1))).toBe(samples)
  expect(withSample(samples, sample(4000, 2, 2))).toHaveLength(2)
})
