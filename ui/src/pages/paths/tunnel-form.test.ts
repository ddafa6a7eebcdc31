import { describe, expect, it } from 'vitest'
import { emptyForm, inputOf, peersOf, secretsOf, withoutPeer, withPeer } from './tunnel-form'

describe('the form of a tunnel', () => {
  it('leaves out secrets that were not typed, so that they are kept', () => {
    const input = inputOf(
      { ...emptyForm(), name: ' wg-x ', addresses: '10.0.0.2/32, fd00::2/128' },
      'wireguard',
    )
    expect(input).toMatchObject({ name: 'wg-x', addresses: ['10.0.0.2/32', 'fd00::2/128'], mtu: null })
    expect(input).not.toHaveProperty('private_key')
    expect('peers' in input && input.peers[0]).not.toHaveProperty('preshared_key')
  })

  it('sends a secret that was typed', () => {
    const values = { ...emptyForm(), private_key: 'abc', 'peers[0].preshared_key': 'def' }
    const input = inputOf(values, 'wireguard')
    expect(input).toMatchObject({ private_key: 'abc', peers: [{ preshared_key: 'def' }] })
    expect(secretsOf(values)).toContain('peers[0].preshared_key')
  })

  it('numbers its peers without gaps', () => {
    const three = withPeer(withPeer(emptyForm()))
    const named = { ...three, 'peers[1].public_key': 'b', 'peers[2].public_key': 'c' }
    const two = withoutPeer(named, 1)
    expect(peersOf(two)).toEqual([0, 1])
    expect(two['peers[1].public_key']).toBe('c')
  })
})
