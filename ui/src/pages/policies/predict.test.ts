import { describe, expect, it } from 'vitest'
import type { Hop } from './model'
import { predict, resolve, stricter, type Resolved } from './predict'

const vpn = (target: string): Hop => ({ type: 'vpn', target })
const wan: Hop = { type: 'interface', target: 'eth0' }
const way = (change: Partial<Resolved>): Resolved => ({
  hops: [],
  splitting: false,
  hop_mode: 'path',
  fail_policy: 'fail-closed',
  ...change,
})

describe('predict', () => {
  it('cuts devices off without hops and lets them out when the policy fails open', () => {
    expect(predict(way({}), 'up')).toEqual({ state: 'blocked', via: [] })
    expect(predict(way({ fail_policy: 'fail-open' }), 'up').state).toBe('direct')
    expect(predict(way({ fail_policy: 'fail-open' }), 'boot').state).toBe('blocked')
  })
  it('takes the next hop in failover', () => {
    const two = way({ hops: [vpn('a'), vpn('b')], hop_mode: 'failover' })
    expect(predict(two, 'up').via).toEqual(['a'])
    expect(predict(two, 'first').via).toEqual(['b'])
    expect(predict(two, 'down').state).toBe('blocked')
    expect(predict(way({ hops: [vpn('a'), wan], hop_mode: 'failover' }), 'down')).toEqual({
      state: 'direct',
      via: ['eth0'],
    })
  })
  it('breaks a nested path unless the policy degrades', () => {
    const nested = way({ hops: [vpn('a'), vpn('b')] })
    expect(predict(nested, 'up').via).toEqual(['a', 'b'])
    expect(predict(nested, 'first').state).toBe('blocked')
    expect(predict({ ...nested, fail_policy: 'fail-degraded' }, 'first').via).toEqual(['b'])
    expect(predict({ ...nested, fail_policy: 'fail-degraded' }, 'down').state).toBe('blocked')
    expect(predict({ ...nested, fail_policy: 'fail-open' }, 'first').state).toBe('direct')
  })
  it('shares among what is left of a pool', () => {
    const pool = way({ hops: [vpn('a'), vpn('b')], splitting: true })
    expect(predict(pool, 'up').via).toEqual(['a', 'b'])
    expect(predict(pool, 'first').via).toEqual(['b'])
    expect(predict(pool, 'down').state).toBe('blocked')
  })
  it('keeps an uplink that was chosen', () => {
    expect(predict(way({ hops: [wan] }), 'down')).toEqual({ state: 'direct', via: ['eth0'] })
  })
})

describe('resolve', () => {
  it('takes the stricter failure policy and the hops of the profile', () => {
    expect(stricter('fail-open', 'fail-degraded')).toBe('fail-degraded')
    expect(stricter('fail-closed', 'fail-open')).toBe('fail-closed')
    const profile = {
      hops: [vpn('a')],
      splitting: false,
      hop_mode: 'path',
      fail_policy: 'fail-open' as const,
    }
    const draft = { hops: [], splitting: false, hop_mode: 'path' as const, fail_policy: null }
    expect(resolve(draft, profile, undefined, 'fail-degraded')).toEqual({
      hops: [vpn('a')],
      splitting: false,
      hop_mode: 'path',
      fail_policy: 'fail-degraded',
    })
  })
})
