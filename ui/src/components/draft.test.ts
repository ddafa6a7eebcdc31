import { describe, expect, it } from 'vitest'
import { merge } from './draft'

describe('merge', () => {
  const base = { name: 'a', priority: 10, hops: ['x'] }
  it('takes each field from who changed it', () => {
    const { merged, clashes } = merge(base, { ...base, name: 'b' }, { ...base, priority: 20 })
    expect(merged).toEqual({ name: 'b', priority: 20, hops: ['x'] })
    expect(clashes).toEqual([])
  })
  it('reports a field that both changed', () => {
    const { merged, clashes } = merge(base, { ...base, hops: ['y'] }, { ...base, hops: ['z'] })
    expect(merged.hops).toEqual(['y'])
    expect(clashes).toEqual([{ field: 'hops', base: ['x'], yours: ['y'], theirs: ['z'] }])
  })
  it('has no clash where both changed to the same', () => {
    expect(merge(base, { ...base, priority: 5 }, { ...base, priority: 5 }).clashes).toEqual([])
  })
})
