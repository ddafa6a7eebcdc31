import { expect, it } from 'vitest'
import { linesOf, scaleOf, spread, ticksOf } from './timescale'

const T = Date.parse('2026-01-01T10:00:00Z')
const ms = (minutes: number) => T + minutes * 60_000

it('a scale leaves room for the names', () => {
  const scale = scaleOf(ms(0), ms(60), 1132)
  expect(scale.x(ms(0))).toBe(132)
  expect(scale.x(ms(30))).toBe(632)
  expect(scaleOf(ms(0), ms(60), 360).left).toBe(84)
})

it('ticks are round times', () => {
  expect(ticksOf(ms(1), ms(59), 4).map((time) => (time - T) / 60_000)).toEqual([15, 30, 45])
  expect(ticksOf(ms(0), ms(600), 6).length).toBeLessThanOrEqual(6)
})

it('marks are moved apart and stay inside', () => {
  expect(spread([10, 11, 12, 90], 18, 8, 100)).toEqual([10, 28, 46, 90])
  expect(spread([95, 97, 99], 18, 8, 100)).toEqual([64, 82, 100])
})

it('lines end where a value or a minute is missing', () => {
  const samples = [
    { at: ms(0), value: 1 },
    { at: ms(1), value: 2 },
    { at: ms(2), value: null },
    { at: ms(3), value: 3 },
    { at: ms(6), value: 0 },
    { at: ms(7), value: 0 },
  ]
  expect(linesOf(samples).map((line) => line.map((each) => each.value))).toEqual([[1, 2], [3], [0, 0]])
})
