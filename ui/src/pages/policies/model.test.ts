import { describe, expect, it } from 'vitest'
import {
  devicesOf,
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
    ({
      id,
      name: id,
      priority: 10,
      created_at: '',
      enabled: true,
      revision: 1,
      status: 'active',
      ...change,
    }) as Policy
  const applied = (id: string, until: string | null = null): Enforced =>
    ({ id, name: id, exception_until: until }) as Enforced
  it('tells new, edited, switched off and removed ones apart', () => {
    const found = pendingOf(
      [
        policy('new', { status: 'pending', revision: 9 }),
        policy('edited', { revision: 8 }),
        policy('off', { enabled: false, revision: 7 }),
        policy('same', {}),
      ],
      [
        applied('edited'),
        applied('off'),
        applied('same'),
        applied('gone'),
        applied('exception', '2030-01-01'),
      ],
      { pending_changes: true, applied_revision: 5 },
    )
    expect(found.map((each) => `${each.id} ${each.kind}`).sort()).toEqual([
      'edited edited',
      'gone removed',
      'new new',
      'off off',
    ])
  })
  it('is empty while all is applied', () => {
    expect(
      pendingOf([policy('a', { revision: 9 })], [applied('a')], {
        pending_changes: false,
        applied_revision: 5,
      }),
    ).toEqual([])
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
