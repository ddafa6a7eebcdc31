import { expect, it } from 'vitest'
import { fromLocal, toLocal } from './local-time'

it('brings a time there and back', () => {
  expect(fromLocal(toLocal('2026-11-26T07:00:00Z'))).toBe('2026-11-26T07:00:00Z')
  expect(toLocal(null)).toBe('')
  expect(fromLocal('')).toBeNull()
  expect(fromLocal('x')).toBeNull()
})
