import { describe, expect, it } from 'vitest'
import { controlOf, find, groupsOf, listOf, shown, typedOf, valueOf } from './settings-tree'

const leaf = (value: unknown) => ({ value, source: 'default', apply: 'live', pending_restart: false })
const tree = {
  marker: leaf(null),
  dns: { backend: leaf('integrated'), rotation: leaf({ value: 1, mode: 'x' }) },
  network: { ipv6: { enabled: leaf(false) }, lan_iface: leaf(['eth1', 'eth2']) },
}

describe('groups of settings', () => {
  it('have a heading for a part with several settings, whatever is shown of it', () => {
    const all = listOf({ a: { x: leaf(1), y: leaf(2), z: leaf(3) }, b: leaf(4), c: { x: leaf(5) } })
    const keys = (shown: typeof all) =>
      groupsOf(shown, all).map(({ name, settings }) => [name, ...settings.map(({ key }) => key)])
    expect(keys(all)).toEqual([
      ['a', 'a.x', 'a.y', 'a.z'],
      ['', 'b', 'c.x'],
    ])
    expect(keys(all.slice(2, 3))).toEqual([['a', 'a.z']])
  })
})

describe('settings', () => {
  it('are a list of dotted keys', () => {
    expect(listOf(tree).map((setting) => setting.key)).toEqual([
      'marker',
      'dns.backend',
      'dns.rotation',
      'network.ipv6.enabled',
      'network.lan_iface',
    ])
    expect(listOf(null)).toEqual([])
  })
  it('are found by key and value', () => {
    const all = listOf(tree)
    expect(find(all, 'ipv6').map((setting) => setting.key)).toEqual(['network.ipv6.enabled'])
    expect(find(all, 'network eth2').map((setting) => setting.key)).toEqual(['network.lan_iface'])
    expect(find(all, '')).toHaveLength(5)
  })
  it('show values in a line', () => {
    expect(shown(['a', 'b'])).toBe('a, b')
    expect(shown(null)).toBe('')
    expect(shown(false)).toBe('false')
    expect(shown({ a: 1 })).toBe('{"a":1}')
  })
  it('come back from the form as they went in', () => {
    for (const value of [true, 0, 12, 'x', '', null, ['a', 'b'], [], { a: [1] }, [{ a: 1 }]]) {
      const control = controlOf(value)
      expect(valueOf(typedOf(value, control), control)).toEqual(value)
    }
  })
  it('take numbers and texts for a value that was never set', () => {
    expect(valueOf('1280', 'unset')).toBe(1280)
    expect(valueOf(' eth0 ', 'unset')).toBe('eth0')
    expect(valueOf('["a"]', 'unset')).toEqual(['a'])
    expect(() => valueOf('{', 'json')).toThrow(SyntaxError)
  })
})
