import { expect, it } from 'vitest'
import { searched } from './parts'

const parts = [
  { name: 'rules', lines: ['policy #0 "a": leg 16', 'ip rule 4700'], count: 2 },
  { name: 'gw_actions', lines: ['#0 -> leg 16'], count: 1 },
]

it('finds lines by all words, in a line or in the name of its part', () => {
  expect(searched(parts, '')).toHaveLength(2)
  expect(searched(parts, 'LEG 16').map((part) => [part.name, part.lines.length])).toEqual([
    ['rules', 1],
    ['gw_actions', 1],
  ])
  expect(searched(parts, 'gw_ 16').map((part) => part.name)).toEqual(['gw_actions'])
  expect(searched(parts, 'nothing')).toEqual([])
})
