import { describe, expect, it } from 'vitest'
import {
  devicesOf,
  fieldsOf,
  isIdle,
  pendingOf,
  readRule,
  stateOf,
  stateOfAction,
  valuesOf,
  viaOfAction,
  type Cell,
  type Enforced,
  type Policy,
} from './model'

describe('readRule', () => {
  it('reads the action of a policy', () => {
    expect(
      readRule(
        'policy #1 "a \\"b\\"" (priority 20, fail-open): IPv4 leg 16 (wg-wg-a); IPv6 leg 16 (wg-wg-a)',
      ),
    ).toEqual({ name: 'a "b"', priority: 20, fail: 'fail-open', action: 'leg 16 (wg-wg-a)' })
    expect(readRule('ip rule 4700: from all')).toBeNull()
  })
  it('finds states and names', () => {
    expect(stateOfAction('reject')).toBe('blocked')
    expect(stateOfAction('direct')).toBe('direct')
    expect(stateOfAction('leg 1 (eth0)')).toBe('direct')
    expect(stateOfAction('proxy 1 (socks) by leg 1 (eth0)')).toBe('ok')
    expect(viaOfAction('in turn leg 16 (wg-wg-a), leg 17 (wg-wg-b)')).toBe('wg-a, wg-b')
  })
})

describe('stateOf', () => {
  const cell = (outcome: Cell['outcome'], leak: boolean): Cell => ({
    outcome,
    leak,
    via: null,
    dns: outcome,
    ipv6: outcome,
  })
  it('is LEAK only against the failure policy', () => {
    expect(stateOf(cell('direct', true), { fail_policy: 'fail-closed', risk: 'high' })).toBe('leak')
    expect(stateOf(cell('direct', true), { fail_policy: 'fail-open', risk: 'low' })).toBe('direct')
    // An uplink as the last hop is a choice.
    expect(stateOf(cell('direct', true), { fail_policy: 'fail-closed', risk: 'low' })).toBe('direct')
    expect(stateOf(cell('next_hop', false), { fail_policy: 'fail-closed', risk: 'none' })).toBe('ok')
  })
})

describe('pendingOf', () => {
  const policy = (id: string, change: Partial<Policy>): Policy =>
    ({ id, name: id, priority: 10, created_at: '', enabled: true, ...change }) as Policy
  const applied = (id: string): Enforced => ({ id, name: id }) as Enforced
  const change = (id: string, op: string, diff = {}) => ({ id, name: id, op, diff }) as never
  it('tells new, edited, switched off and removed ones apart', () => {
    const found = pendingOf(
      [
        policy('new', { priority: 4 }),
        policy('edited', { priority: 3 }),
        policy('off', { enabled: false, priority: 2 }),
        policy('on', { priority: 1 }),
        policy('same', {}),
        policy('idle', { enabled: false, priority: 5 }),
      ],
      [applied('edited'), applied('off'), applied('same'), applied('gone'), applied('exception')],
      [
        change('gone', 'delete'),
        change('new', 'create'),
        change('edited', 'update', { priority: { from: 9, to: 3 } }),
        change('off', 'update'),
        change('on', 'update'),
        change('idle', 'create'),
      ],
    )
    expect(found.map((each) => `${each.id} ${each.kind}`)).toEqual([
      'on new',
      'off off',
      'edited edited',
      'new new',
      'idle new',
      'gone removed',
    ])
    expect(found.filter(isIdle).map((each) => each.id)).toEqual(['idle'])
    expect(found[2] && fieldsOf(found[2])).toEqual([{ field: 'priority', from: 9, to: 3 }])
  })
  it('is empty while all is applied', () => {
    expect(pendingOf([policy('a', {})], [applied('a')], [])).toEqual([])
  })
})

describe('valuesOf', () => {
  it('splits a list and leaves an expression whole', () => {
    expect(valuesOf('a, b,')).toEqual(['a', 'b'])
    expect(valuesOf('a, ~x{1,2}')).toEqual(['a', '~x{1,2}'])
    expect(valuesOf('')).toEqual([])
  })
  it('finds the members of groups', () => {
    const group = { id: 'g', name: 'phones', members: ['1', '2'] } as never
    expect(devicesOf({ source_type: 'device_group', source_value: 'g' }, [group])).toEqual(['1', '2'])
    expect(devicesOf({ source_type: 'subnet', source_value: '10.0.0.0/8' }, [])).toBeNull()
  })
})
