import { describe, expect, it } from 'vitest'
import type { Schemas } from '@/api/client'
import { addressKey, decides, filtersOf, passes, trustClassOf } from './filters'

const device = {
  id: 'd',
  name: 'Laptop Mara',
  mac: '02:00:00:00:00:0a',
  macs: [],
  hostname: 'framework',
  trust_class: null,
  status: 'known',
  groups: ['g'],
  tags: ['work'],
  ips: ['192.0.2.9'],
} as unknown as Schemas['Device']
const groups = new Map([['g', { trust_class: 'trusted' }]])

describe('filters of devices', () => {
  it('come from the address', () => {
    expect(filtersOf({ q: ' mara  0a ', status: 'known', decision: '' })).toEqual({
      words: ['mara', '0a'],
      status: 'known',
      group: undefined,
      trustClass: undefined,
      decision: undefined,
    })
  })
  it('find words in name, addresses and tags', () => {
    expect(passes(device, filtersOf({ q: 'mara 192.0.2' }), groups)).toBe(true)
    expect(passes(device, filtersOf({ q: 'work' }), groups)).toBe(true)
    expect(passes(device, filtersOf({ q: 'tv' }), groups)).toBe(false)
  })
  it('use the trust class of a group', () => {
    expect(trustClassOf(device, groups)).toBe('trusted')
    expect(trustClassOf({ trust_class: null, groups: [] }, groups)).toBe('standard')
    expect(passes(device, filtersOf({ class: 'trusted' }), groups)).toBe(true)
    expect(passes(device, filtersOf({ class: 'guest' }), groups)).toBe(false)
  })
  it('count blocked devices as protected', () => {
    expect(decides('protected', 'block')).toBe(true)
    expect(decides('protected', 'direct')).toBe(false)
    expect(decides('direct', undefined)).toBe(false)
    expect(decides(undefined, undefined)).toBe(true)
  })
  it('sort addresses as numbers', () => {
    const keys = [['192.0.2.10'], ['192.0.2.9'], ['fd00::1']].map((ips) => addressKey({ ips }))
    expect([...keys].sort()).toEqual([keys[1], keys[0], keys[2]])
  })
})
