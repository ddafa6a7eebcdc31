import { expect, it } from 'vitest'
import { extending, letsOut, linesOf, type Exception } from './exceptions-model'

const exception = {
  type: 'emergency-bypass',
  device_id: 'd',
  allow_direct: true,
  reason: 'r',
  targets: [],
  profile: null,
} as unknown as Exception

it('extends from the time that is left, up to a day', () => {
  expect(extending(exception, 61, 15).duration_min).toBe(17)
  expect(extending(exception, 86_000, 60).duration_min).toBe(1440)
  expect(extending(exception, 0, 15).duration_min).toBe(16)
})

it('knows which exceptions let out', () => {
  expect(letsOut(exception)).toBe(true)
  expect(letsOut({ type: 'quarantine', allow_direct: true })).toBe(false)
})

it('reads lines', () => {
  expect(linesOf('a\n b ,c\n\n')).toEqual(['a', 'b', 'c'])
})
