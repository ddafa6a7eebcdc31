import { describe, expect, it } from 'vitest'
import { brokenLink, changesOf, fieldNames, pageOf, queryOf, type AuditEntry } from './audit-entries'

function entry(id: number, prev_hash: string, hash: string): AuditEntry {
  return {
    id,
    timestamp: '2026-01-01T00:00:00Z',
    actor: 'anna',
    action: 'create_device',
    resource_type: 'device',
    resource_id: null,
    details: {},
    result: 'success',
    ip: null,
    auth: 'session',
    request_id: '',
    prev_hash,
    hash,
  }
}

describe('audit', () => {
  it('takes known filters from the address and leaves out others', () => {
    expect(queryOf({ actor: 'anna', before: '12', entry: '3', result: '' })).toEqual({
      limit: 50,
      actor: 'anna',
      before: '12',
    })
  })
  it('reads changed fields, with values where they are', () => {
    const { changes, rest } = changesOf({
      changes: [
        {
          op: 'replace',
          type: 'tunnel',
          id: 'x',
          name: 'wg-a',
          fields: ['mtu', 'peers', 'notes'],
          diff: { mtu: { from: 1, to: 2 }, 'peers[0].port': { from: 3, to: 4 }, key: { secret: 'changed' } },
        },
        { op: 'set', type: 'setting', name: 'dns.backend' },
      ],
      level: 'soft',
    })
    expect(changes[0]?.diff).toEqual({
      mtu: { from: 1, to: 2 },
      'peers[0].port': { from: 3, to: 4 },
      key: { secret: 'changed' },
    })
    expect(changes[0]?.others).toEqual(['notes'])
    expect(changes[0] && fieldNames(changes[0])).toEqual(['mtu', 'peers', 'key', 'notes'])
    expect(changes[1]).toEqual({
      op: 'set',
      type: 'setting',
      id: null,
      name: 'dns.backend',
      diff: {},
      others: [],
    })
    expect(rest).toEqual([['level', 'soft']])
  })
  it('survives details of any shape', () => {
    expect(changesOf(null)).toEqual({ changes: [], rest: [] })
    expect(changesOf('text')).toEqual({ changes: [], rest: [] })
    expect(changesOf({ changes: [null, 3] }).changes).toEqual([])
    expect(changesOf({ changes: [{ diff: { a: 3 }, fields: 'x' }] }).changes[0]?.diff).toEqual({})
  })
  it('finds the entry that does not follow the one before it', () => {
    expect(brokenLink([entry(3, 'b', 'c'), entry(2, 'a', 'b'), entry(1, '', 'a')])).toBeNull()
    expect(brokenLink([entry(3, 'b', 'c'), entry(2, 'x', 'b'), entry(1, '', 'a')])).toBe(2)
    expect(brokenLink([])).toBeNull()
  })
  it('links kinds that have a page', () => {
    expect(pageOf('tunnel', '1')).toBe('/paths/tunnels/1')
    expect(pageOf('setting', null)).toBeUndefined()
  })
})
