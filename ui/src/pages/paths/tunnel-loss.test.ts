import { describe, expect, it } from 'vitest'
import { lossOf, replaced } from './tunnel-loss'

const tunnel = { id: '1', name: 'wg-a' }
const a = { type: 'vpn', target: 'wg-a' } as const
const byId = { type: 'vpn', target: '1' } as const
const b = { type: 'vpn', target: 'wg-b' } as const

describe('a policy that loses a tunnel', () => {
  it('goes on by its other hops where one of several suffices', () => {
    expect(lossOf({ hops: [a, b], hop_mode: 'failover', fail_policy: 'fail-open' }, tunnel)).toEqual({
      then: 'others',
      hops: ['wg-b'],
    })
    expect(lossOf({ hops: [byId, b], splitting: true, fail_policy: 'fail-closed' }, tunnel).then).toBe(
      'others',
    )
  })
  it('follows its failure policy where each hop is needed, or none is left', () => {
    expect(lossOf({ hops: [a, b], hop_mode: 'path', fail_policy: 'fail-closed' }, tunnel).then).toBe(
      'blocked',
    )
    expect(lossOf({ hops: [a], hop_mode: 'failover', fail_policy: 'fail-closed' }, tunnel).then).toBe(
      'blocked',
    )
    expect(lossOf({ hops: [byId], hop_mode: 'path', fail_policy: 'fail-open' }, tunnel).then).toBe('direct')
  })
  it('keeps its other hops where the tunnel is replaced', () => {
    expect(replaced([a, b], tunnel, 'wg-c')).toEqual([{ type: 'vpn', target: 'wg-c' }, b])
  })
})
