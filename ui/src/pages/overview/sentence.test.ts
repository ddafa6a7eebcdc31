import { describe, expect, it } from 'vitest'
import { bareSentence } from '@/components/verdict'
import { partsOf } from './sentence'

const names = {
  tunnels: [{ id: 't1', name: 'wg-a' }],
  policies: [{ id: 'p1', name: 'vpn-only' }],
  devices: [{ id: 'd1', name: 'laptop' }],
}

describe('the sentence of the verdict', () => {
  it('loses its word and its age', () => {
    expect(bareSentence({ word: 'OK', sentence: 'OK, no leaks. No device is known. Checked 3 s ago.' })).toBe(
      ', no leaks. No device is known.',
    )
  })
  it('links counts and the tunnel', () => {
    const parts = partsOf(
      'Of 7 protected devices 5 leave through their policy, 2 are cut off on purpose: tunnel wg-a is down (no handshake for 192 s). 1 device leaves directly: 1 without a policy.',
      names,
    )
    expect(
      parts.filter((part) => part.to).map((part) => [part.text, part.search?.decision ?? part.to]),
    ).toEqual([
      ['7 protected devices', 'protected'],
      ['5 leave through their policy', 'through_policy'],
      ['2 are cut off on purpose', 'block'],
      ['wg-a', '/paths/tunnels/t1'],
      ['1 device leaves directly', 'direct'],
      ['1 without a policy', 'no_policy'],
    ])
    expect(parts.map((part) => part.text).join('')).toContain('cut off on purpose: tunnel wg-a is down')
  })
  it('finds names only as words of their own', () => {
    expect(partsOf('wg-ab is down', names)).toEqual([{ text: 'wg-ab is down' }])
    expect(partsOf('policy "vpn-only" matched', names)[1]).toMatchObject({
      text: 'vpn-only',
      to: '/policies/p1',
    })
  })
})
