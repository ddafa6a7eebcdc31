import { expect, it } from 'vitest'
import { effectOf, extending, letsOut, type Exception } from './exceptions'
import { linesOf } from '@/components/draft-lines'

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
  expect(letsOut({ ...exception, type: 'quarantine' })).toBe(false)
})

it('tells what each does to the traffic', () => {
  const effect = (change: Partial<Exception>) => effectOf({ ...exception, ...change })
  expect(effect({})).toBe('direct')
  expect(effect({ type: 'temporary-direct', allow_direct: false })).toBe('nothing')
  expect(effect({ type: 'temporary-direct', profile: 'p' })).toBe('profile')
  expect(effect({ type: 'service-allowlist' })).toBe('some')
  expect(effect({ type: 'captive-portal' })).toBe('portal')
  expect(effect({ type: 'quarantine', allow_direct: false })).toBe('cut')
  expect(letsOut({ ...exception, allow_direct: false })).toBe(false)
})

it('reads lines', () => {
  expect(linesOf('a\n b ,c\n\n')).toEqual(['a', 'b', 'c'])
})
