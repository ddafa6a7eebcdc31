import { describe, expect, it } from 'vitest'
import type { Schemas } from '@/api/client'
import { topClients, topNames } from './top-lists'

function client(ip: string, queries: number, top: [string, number][]): Schemas['ClientStats'] {
  return {
    client: { ip, device_id: null, name: null },
    queries,
    blocked: 0,
    cached: 0,
    last_seen: '2026-11-29T12:00:00Z',
    top: top.map(([name, count]) => ({ name, queries: count })),
  }
}

describe('top lists', () => {
  const clients = [
    client('192.0.2.1', 3, [['a.example', 2]]),
    client('192.0.2.2', 9, [
      ['b.example', 5],
      ['a.example', 4],
    ]),
    client('192.0.2.3', 0, []),
  ]
  it('have the most frequent first, and no client without a query', () => {
    expect(topClients(clients).map((each) => each.client.ip)).toEqual(['192.0.2.2', '192.0.2.1'])
  })
  it('sum a name over all clients', () => {
    expect(topNames(clients)).toEqual([
      { name: 'a.example', queries: 6 },
      { name: 'b.example', queries: 5 },
    ])
  })
})
