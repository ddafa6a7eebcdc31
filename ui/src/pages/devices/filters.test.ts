import { describe, expect, it } from 'vitest'
import type { Schemas } from '@/api/client'
import {
  addressKey,
  choicesOf,
  egressesOf,
  filtersOf,
  passes,
  passesPath,
  pathFiltersOf,
  pathKey,
  trustClassOf,
} from './filters'
import { readPaths, type DevicePath } from './use-paths'

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
    expect(filtersOf({ q: ' mara  0a ', status: 'known' })).toEqual({
      words: ['mara', '0a'],
      status: 'known',
      group: undefined,
      trustClass: undefined,
    })
    expect(pathFiltersOf({ decision: '', egress: 'wg-a' })).toEqual({
      decision: undefined,
      policy: undefined,
      egress: 'wg-a',
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
  it('sort addresses as numbers', () => {
    const keys = [['192.0.2.10'], ['192.0.2.9'], ['fd00::1']].map((ips) => addressKey({ ips }))
    expect([...keys].sort()).toEqual([keys[1], keys[0], keys[2]])
  })
})

function path(change: Partial<DevicePath> = {}): DevicePath {
  return {
    device_id: 'd',
    name: 'd',
    decision: 'tunnel',
    treatment: 'through_policy',
    policy: { id: 'p', name: 'work' },
    exception: null,
    via: 'vpn:wg-a',
    egress: ['wg-a'],
    uplink: 'eth0',
    ...change,
  } as DevicePath
}

const blocked = path({ decision: 'block', treatment: 'blocked', via: null, egress: [], uplink: null })
const excepted = path({
  decision: 'direct',
  treatment: 'direct_by_exception',
  policy: null,
  exception: { id: 'e', type: 'temporary-direct', expires_at: null },
  via: 'default',
  egress: [],
})
const bare = path({ decision: 'direct', treatment: 'no_policy', policy: null, via: 'default', egress: [] })

describe('filters of paths', () => {
  const passing = (filter: object) =>
    [path(), blocked, excepted, bare].map((each) => passesPath(each, filter))
  it('take decisions, and treatments as the verdict counts them', () => {
    expect(passing({ decision: 'protected' })).toEqual([true, true, false, false])
    expect(passing({ decision: 'block' })).toEqual([false, true, false, false])
    expect(passing({ decision: 'direct' })).toEqual([false, false, true, true])
    expect(passing({ decision: 'no_policy' })).toEqual([false, false, false, true])
  })
  it('take the policy that decides, an exception before it, or none', () => {
    expect(passing({ policy: 'p' })).toEqual([true, true, false, false])
    expect(passing({ policy: 'e' })).toEqual([false, false, true, false])
    expect(passing({ policy: 'none' })).toEqual([false, false, false, true])
  })
  it('take tunnels and uplinks', () => {
    expect(passing({ egress: 'wg-a' })).toEqual([true, false, false, false])
    expect(passing({ egress: 'eth0' })).toEqual([false, false, true, true])
  })
  it('pass no device whose path is not known, unless nothing is asked for', () => {
    expect(passesPath(undefined, { decision: 'tunnel' })).toBe(false)
    expect(passesPath(undefined, {})).toBe(true)
  })
  it('know what can be chosen', () => {
    expect(choicesOf([path(), excepted])).toEqual({
      policies: [['p', 'work']],
      egresses: [
        ['eth0', 'eth0'],
        ['wg-a', 'wg-a'],
      ],
    })
    expect(egressesOf(path({ via: 'proxy:office', egress: [] }))).toEqual(['office'])
  })
  it('sort blocked devices first and unknown ones last', () => {
    const keys = [undefined, path(), blocked].map(pathKey)
    expect([...keys].sort()).toEqual([keys[2], keys[1], keys[0]])
  })
})

describe('readPaths', () => {
  it('reads page after page, also when the last one is full', async () => {
    const all = Array.from({ length: 4 }, (_, index) => path({ device_id: String(index) }))
    const asked: (string | undefined)[] = []
    const read = await readPaths((after) => {
      asked.push(after)
      const from = all.findIndex((each) => each.device_id === after) + 1
      return Promise.resolve(all.slice(from, from + 2))
    }, 2)
    expect(read).toEqual(all)
    expect(asked).toEqual([undefined, '1', '3'])
  })
})
