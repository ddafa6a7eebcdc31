import { expect, it } from 'vitest'
import { sizeOf, takenOf } from './range'

const range = {
  range_start: '192.168.1.10',
  range_end: '192.168.1.29',
  exclusions: ['192.168.1.12', '192.168.1.20-192.168.1.40', 'nonsense'],
}

it('the size of a range leaves out exclusions, and their parts outside of it', () => {
  expect(sizeOf(range)).toBe(20 - 1 - 10)
  expect(sizeOf({ ...range, exclusions: [] })).toBe(20)
})

it('there is no size without a range', () => {
  expect(sizeOf({ range_start: null, range_end: null, exclusions: [] })).toBeNull()
  expect(sizeOf({ range_start: '10.0.0.9', range_end: '10.0.0.1', exclusions: [] })).toBeNull()
})

it('only addresses of the range are taken from it', () => {
  expect(takenOf(range, ['192.168.1.10', '192.168.1.10', '192.168.1.200'])).toBe(1)
})
