import { describe, expect, it } from 'vitest'
import {
  domainsAbove,
  forServer,
  inRange,
  loadedOnly,
  passes,
  readFilters,
  summarise,
  type Entry,
} from './filters'

function entry(change: Partial<Entry> = {}): Entry {
  return {
    id: 1,
    time: '2026-11-25T03:00:00Z',
    client: { ip: '192.0.2.1', device_id: null, name: null },
    question: { name: 'a.example', type: 'A' },
    status: 'allowed',
    reason: null,
    rule: null,
    list_id: null,
    list: null,
    egress: null,
    through: null,
    upstream: '192.0.2.53',
    rcode: 'NOERROR',
    answers: [],
    elapsed_ms: 12,
    proto: 'plain',
    dnssec: null,
    ede: null,
    ...change,
  }
}

describe('filters of the query log', () => {
  it('keeps known names with a value only', () => {
    expect(readFilters({ domain: 'a', type: '', open: '7' })).toEqual({ domain: 'a' })
  })

  it('gives the daemon what it can apply', () => {
    expect(forServer({ domain: 'a', client: 'c', type: 'A' })).toEqual({ domain: 'a', client: 'c' })
    expect(forServer({ cached: 'yes' })).toEqual({ status: 'cached' })
    expect(forServer({ cached: 'yes', status: 'blocked' })).toEqual({ status: 'blocked' })
  })

  it('names the filters that only the loaded entries are searched by', () => {
    expect(loadedOnly({ domain: 'a', from: 'x', type: 'A', slower: '10' })).toEqual(['type', 'slower'])
    expect(loadedOnly({ cached: 'yes' })).toEqual([])
    expect(loadedOnly({ cached: 'no' })).toEqual(['cached'])
  })

  it('applies the others to an entry', () => {
    expect(passes(entry(), { reason: 'none' })).toBe(true)
    expect(passes(entry({ reason: 'rule' }), { reason: 'none' })).toBe(false)
    expect(passes(entry(), { type: 'aaaa' })).toBe(false)
    expect(passes(entry(), { slower: '12' })).toBe(false)
    expect(passes(entry({ elapsed_ms: 12.5 }), { slower: '12' })).toBe(true)
    expect(passes(entry({ status: 'cached' }), { cached: 'no' })).toBe(false)
  })

  it('holds entries to a range with one end or two', () => {
    expect(inRange(entry(), { from: '2026-11-25T03:00:00Z' })).toBe(true)
    expect(inRange(entry(), { to: '2026-11-25T02:59:59Z' })).toBe(false)
  })

  it('lists the domains above a name', () => {
    expect(domainsAbove('a.b.example.')).toEqual(['a.b.example', 'b.example'])
    expect(domainsAbove('example')).toEqual(['example'])
  })

  it('counts clients once, and blocked queries by their match', () => {
    const sum = summarise([
      entry({ status: 'blocked', reason: 'blocklist' }),
      entry({ status: 'blocked', reason: 'rule' }),
      entry({ status: 'blocked', reason: 'rule' }),
      entry({ client: { ip: '192.0.2.2', device_id: 'd', name: 'tv' } }),
    ])
    expect(sum).toEqual({
      queries: 4,
      clients: 2,
      blocked: 3,
      by: [
        ['rule', 2],
        ['blocklist', 1],
      ],
    })
  })
})
