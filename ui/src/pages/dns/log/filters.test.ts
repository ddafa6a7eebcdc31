import { describe, expect, it } from 'vitest'
import { domainsAbove, isNarrowed, readFilters, summarise, toQuery, type Entry } from './filters'

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
    left_by: null,
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

  it('gives all of them to the daemon', () => {
    const filters = {
      domain: '=a.example',
      client: 'c',
      status: 'blocked',
      list: 'l',
      type: 'aaaa',
      upstream: '192.0.2.53',
      egress: 'auto',
      cached: 'no',
      slower: '10',
      from: '2026-11-25T03:00:00Z',
      to: '2026-11-25T04:00:00Z',
    }
    expect(toQuery(filters)).toEqual({
      domain: '=a.example',
      client: 'c',
      status: 'blocked',
      list: 'l',
      type: 'AAAA',
      upstream: '192.0.2.53',
      egress: 'auto',
      cached: false,
      slower_than: 10,
      since: '2026-11-25T03:00:00Z',
      until: '2026-11-25T04:00:00Z',
    })
    expect(toQuery({})).toEqual({})
  })

  it('tells a narrowed list from a range of time', () => {
    expect(isNarrowed({ from: 'x', to: 'y' })).toBe(false)
    expect(isNarrowed({ from: 'x', type: 'A' })).toBe(true)
  })

  it('lists the domains above a name', () => {
    expect(domainsAbove('a.b.example.')).toEqual(['a.b.example', 'b.example'])
    expect(domainsAbove('example')).toEqual(['example'])
  })

  it('counts clients once, and blocked queries by the list that decided', () => {
    const list = { id: 'l', name: 'ads' }
    const sum = summarise([
      entry({ status: 'blocked', reason: 'canary' }),
      entry({ status: 'blocked', reason: 'rule', list_id: 'l', list }),
      entry({ status: 'blocked', reason: 'rule', list_id: 'l', list }),
      entry({ client: { ip: '192.0.2.2', device_id: 'd', name: 'tv' } }),
    ])
    expect(sum).toEqual({
      queries: 4,
      clients: 2,
      blocked: 3,
      by: [
        { reason: 'rule', list: 'l', name: 'ads', count: 2 },
        { reason: 'canary', list: null, name: null, count: 1 },
      ],
    })
  })
})
