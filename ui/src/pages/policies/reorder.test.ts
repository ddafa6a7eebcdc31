import { describe, expect, it } from 'vitest'
import { moved, nudged, renumber, type Ranked } from './reorder'

const list = (...priorities: number[]): Ranked[] =>
  priorities.map((priority, at) => ({ id: 'abcdefgh'[at] ?? '', priority }))

/** The order that the server makes of the changed priorities. */
function sorted(before: Ranked[], changes: Ranked[]): string {
  const age = new Map(before.map((each, at) => [each.id, at]))
  return before
    .map((each) => changes.find((change) => change.id === each.id) ?? each)
    .sort((one, other) => one.priority - other.priority || (age.get(one.id) ?? 0) - (age.get(other.id) ?? 0))
    .map((each) => each.id)
    .join('')
}

describe('moved', () => {
  it('puts a block before another row, in its own order', () => {
    expect(moved(['a', 'b', 'c', 'd'], ['d', 'b'], 'a').join('')).toBe('bdac')
    expect(moved(['a', 'b', 'c', 'd'], ['a'], null).join('')).toBe('bcda')
  })
  it('takes the next row where the target moves itself', () => {
    expect(moved(['a', 'b', 'c', 'd'], ['b', 'c'], 'c').join('')).toBe('abcd')
    expect(moved(['a', 'b', 'c'], ['a', 'c'], 'c').join('')).toBe('bac')
  })
})

describe('nudged', () => {
  it('moves by one place and stays at the ends', () => {
    expect(nudged(['a', 'b', 'c'], ['b'], -1).join('')).toBe('bac')
    expect(nudged(['a', 'b', 'c'], ['b'], 1).join('')).toBe('acb')
    expect(nudged(['a', 'b', 'c'], ['a'], -1).join('')).toBe('abc')
    expect(nudged(['a', 'b', 'c'], ['b', 'c'], 1).join('')).toBe('abc')
  })
})

describe('renumber', () => {
  it('changes one priority where there is room', () => {
    expect(renumber(list(10, 20, 30), ['c', 'a', 'b'], ['c'])).toEqual([{ id: 'c', priority: 5 }])
    expect(renumber(list(10, 20, 30), ['a', 'c', 'b'], ['c'])).toHaveLength(1)
    expect(renumber(list(10, 20, 1000), ['b', 'a', 'c'], ['b'])).toHaveLength(1)
  })
  it('changes nothing where nothing moves', () => {
    expect(renumber(list(10, 10, 1000), ['a', 'b', 'c'], ['a'])).toEqual([])
    expect(renumber([], [], [])).toEqual([])
  })
  it('keeps steps of ten behind the last one', () => {
    expect(renumber(list(10, 20, 30), ['b', 'c', 'a'], ['a'])).toEqual([{ id: 'a', priority: 40 }])
  })
  it('renumbers those behind without room', () => {
    const before = list(10, 11, 12, 100)
    const changes = renumber(before, ['a', 'c', 'b', 'd'], ['c'])
    expect(sorted(before, changes)).toBe('acbd')
    expect(changes.some((change) => change.id === 'd')).toBe(false)
  })
  it('reaches the order of every move', () => {
    const ids = ['a', 'b', 'c', 'd']
    const blocks = [['a'], ['b'], ['c'], ['d'], ['a', 'b'], ['b', 'd'], ['a', 'c', 'd']]
    for (const before of [
      list(10, 20, 30, 40),
      list(1, 2, 3, 4),
      list(5, 5, 5, 5),
      list(0, 0, 7, 1000),
      list(1, 1, 2, 2),
    ])
      for (const block of blocks)
        for (const target of [...ids, null]) {
          const order = moved(ids, block, target)
          const changes = renumber(before, order, block)
          expect(sorted(before, changes)).toBe(order.join(''))
          expect(changes.every((change) => change.priority >= 0)).toBe(true)
        }
  })
})
