import { describe, expect, it } from 'vitest'
import { settingsOf, type Choice, type Now } from './names-plan'

const now: Now = {
  servers: [],
  tlsNames: { '10.0.0.1': 'dns.example' },
  filtering: true,
  strangers: 'direct',
}
const keep: Choice = { resolver: 'keep', own: [], withList: false, strangers: 'direct' }
const quad9 = {
  id: 'p1',
  name: 'Quad9',
  upstreams: ['9.9.9.9', '2620:fe::fe'],
  mode: 'dot' as const,
  tls_name: 'dns.quad9.net',
}

describe('the settings that the setup changes', () => {
  it('are none if everything stays', () => {
    expect(settingsOf(keep, now, [quad9])).toEqual({})
    expect(settingsOf({ ...keep, withList: true }, now, [quad9])).toEqual({})
  })
  it('are the servers of a preset with its protocol and the name on its certificates', () => {
    expect(settingsOf({ ...keep, resolver: 'p1' }, now, [quad9])).toEqual({
      'dns.upstream_servers': ['9.9.9.9', '2620:fe::fe'],
      'dns.upstream_mode': 'dot',
      'dns.upstream_tls_names': {
        '10.0.0.1': 'dns.example',
        '9.9.9.9': 'dns.quad9.net',
        '2620:fe::fe': 'dns.quad9.net',
      },
    })
  })
  it('are typed servers without encryption, the filter and the way of unknown hosts', () => {
    expect(
      settingsOf(
        { resolver: 'own', own: ['192.0.2.53'], withList: true, strangers: 'blocked' },
        { ...now, filtering: false },
        [],
      ),
    ).toEqual({
      'dns.upstream_servers': ['192.0.2.53'],
      'dns.upstream_mode': 'plain',
      'dns.filtering_enabled': true,
      'network.unknown_hosts': 'blocked',
    })
  })
})
