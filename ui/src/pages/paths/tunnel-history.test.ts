import { describe, expect, it } from 'vitest'
import { bandsOf, beginOf, latenciesOf, peakOf, ratesOf, recentRates, type Recorded } from './tunnel-history'

const T = Date.parse('2026-01-01T10:00:00Z')
const at = (minutes: number) => new Date(T + minutes * 60_000).toISOString()
const ms = (minutes: number) => T + minutes * 60_000

const recorded: Recorded = {
  tunnel_id: 'a',
  name: 'wg-a',
  spans: [
    { from: at(0), to: at(10), status: 'up' },
    { from: at(10), to: at(12), status: 'error' },
    { from: at(12), to: at(19.5), status: 'up' },
  ],
  minutes: [
    { at: at(16), rx_bytes: 600, tx_bytes: 60, latency_ms: null },
    { at: at(17), rx_bytes: 6000, tx_bytes: 0, latency_ms: null },
    { at: at(19), rx_bytes: 0, tx_bytes: 0, latency_ms: null },
    { at: at(20), rx_bytes: 1, tx_bytes: 1, latency_ms: null },
  ],
}

describe('the record of a tunnel', () => {
  it('has bands within the drawing, the last one until now', () => {
    expect(bandsOf(recorded, ms(5), ms(20), (status) => status)).toEqual([
      { from: ms(5), to: ms(10), paint: 'active', word: 'up' },
      { from: ms(10), to: ms(12), paint: 'offline', word: 'error' },
      { from: ms(12), to: ms(20), paint: 'active', word: 'up' },
    ])
  })
  it('does not go on if it is old', () => {
    expect(bandsOf(recorded, ms(5), ms(60), (status) => status).at(-1)?.to).toBe(ms(19.5))
  })
  it('has rates of whole minutes', () => {
    expect(ratesOf(recorded, ms(20.5), 'rx_bytes').map((sample) => sample.value)).toEqual([10, 100, 0])
    expect(peakOf(ratesOf(recorded, ms(20.5), 'rx_bytes'))).toEqual({ at: ms(17), value: 100 })
    expect(peakOf([])).toBeNull()
  })
  it('leaves gaps for missing minutes', () => {
    expect(recentRates(recorded, ms(20.5), 5)).toEqual([null, 11, 100, null, 0])
  })
  it('has no latencies without probes', () => {
    expect(latenciesOf(recorded)).toEqual([])
  })
  it('begins with the range or the record', () => {
    expect(beginOf([recorded], 3_600_000, ms(20))).toBe(ms(0))
    expect(beginOf([recorded], 900_000, ms(20))).toBe(ms(5))
    expect(beginOf([], 3_600_000, ms(20))).toBe(ms(10))
  })
})
