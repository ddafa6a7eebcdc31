import { describe, expect, it } from 'vitest'
import type { Schemas } from '@/api/client'
import { failureOf, firstPriority, policyOf } from './first-policy'

const policy = (change: Partial<Schemas['RoutingPolicy']>) =>
  ({
    priority: 20,
    source_type: 'device',
    source_value: '',
    fail_policy: null,
    ...change,
  }) as Schemas['RoutingPolicy']

describe('policy of the first device', () => {
  const device = { id: 'id-1', name: 'laptop', mac: '02:00:00:00:00:01', macs: [] }
  it('is found by id, name or address', () => {
    const all = [policy({ source_value: 'tv' }), policy({ source_value: 'laptop' })]
    expect(policyOf(all, device)).toBe(all[1])
    expect(policyOf([policy({ source_value: 'id-1' })], device)).toBeDefined()
    expect(policyOf([policy({ source_value: 'laptop, tv' })], device)).toBeUndefined()
    expect(policyOf([policy({ source_type: 'all' })], device)).toBeUndefined()
  })
  it('wins over the others', () => {
    expect(firstPriority([])).toBe(10)
    expect(firstPriority([policy({ priority: 40 }), policy({ priority: 30 })])).toBe(20)
    expect(firstPriority([policy({ priority: 10 })])).toBe(9)
  })
  it('is fail-closed unless it says otherwise', () => {
    expect(failureOf(undefined)).toBe('fail-closed')
    expect(failureOf(policy({}))).toBe('fail-closed')
    expect(failureOf(policy({ fail_policy: 'fail-open' }))).toBe('fail-open')
  })
})
