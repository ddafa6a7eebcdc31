import { describe, expect, it } from 'vitest'
import { settingsBelow } from './setting-rows'

describe('settings as rows', () => {
  it('walks the tree and shows nothing as a dash', () => {
    const leaf = (value: unknown) => ({ value, source: 'default', apply: 'live', pending_restart: false })
    const rows = settingsBelow(
      { dns: { one: leaf([]), two: { three: leaf(5) } }, log: { level: leaf('x') } },
      'dns',
    )
    expect(rows.map(({ key, value }) => [key, value])).toEqual([
      ['dns.one', '-'],
      ['dns.two.three', '5'],
    ])
  })
})
