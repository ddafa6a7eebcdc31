import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import {
  FlowStream,
  keyOf,
  merged,
  packetAt,
  queryOf,
  typedFilter,
  type Flow,
  type FlowNews,
} from './flow-list'

const path = { at: '2026-11-30T10:00:00Z', egress: 'wg-a', verdict: 'permitted' } as Flow['paths'][number]
const flow = (id: string, more: Partial<Flow> = {}): Flow => ({
  flow_id: id,
  id: null,
  active: true,
  part: 0,
  client: {
    ip: '192.168.10.5',
    port: 40_000,
    mac: '02:00:00:00:00:01',
    interface: 'lan',
    vlan: 0,
    device_id: 'd',
    device: 'laptop',
    trust_class: null,
  },
  destination: '198.51.100.7',
  destination_port: 443,
  protocol: 'tcp',
  names: [],
  country: null,
  server_name: null,
  verdict: 'permitted',
  reason: 'policy_egress',
  policy: null,
  egress: 'wg-a',
  paths: [path],
  path_changes: 0,
  sent: null,
  received: null,
  started_at: '2026-11-30T10:00:00Z',
  last_at: null,
  ended_at: null,
  end: null,
  ...more,
})
const ended = (id: string, at: string) =>
  flow(id, { active: false, ended_at: `2026-11-30T${at}Z`, end: 'closed' })

it('takes what is set of the address, and an address for a destination', () => {
  expect(queryOf({ device: 'd', open: 'x', domain: '' })).toEqual({ device: 'd' })
  expect(typedFilter('192.0.2.7')).toEqual({ destination: '192.0.2.7', domain: undefined })
  expect(typedFilter('2001:db8::7')).toEqual({ destination: '2001:db8::7', domain: undefined })
  expect(typedFilter('=example.com')).toEqual({ destination: undefined, domain: '=example.com' })
  expect(typedFilter(undefined)).toEqual({ destination: undefined, domain: undefined })
})

it('asks about the packet as of the path', () => {
  expect(packetAt(flow('a'), path)).toEqual({
    device_id: 'd',
    destination: '198.51.100.7',
    at: path.at,
    protocol: 'tcp',
    port: 443,
  })
  expect(packetAt(flow('a', { protocol: 'icmpv6' }), path)).not.toHaveProperty('port')
  expect(packetAt(flow('a', { protocol: '47' }), path)).toBeNull()
  expect(packetAt(flow('a', { client: null }), path)).toBeNull()
})

it('puts news over the list, and the newest first', () => {
  const list = [flow('a'), ended('b', '10:00:01')]
  const news: FlowNews[] = [
    { flow: flow('c', { started_at: '2026-11-30T10:00:05Z' }), at: 1000 },
    { flow: ended('a', '10:00:04'), at: 1000 },
    // The list knows its end already.
    { flow: flow('b', { path_changes: 3 }), at: 1000 },
  ]
  const rows = merged(list, news, 1000)
  expect(rows.map(keyOf)).toEqual(['c.0', 'a.0', 'b.0'])
  expect(rows.map(({ active }) => active)).toEqual([true, false, false])
  // What was said long before the list was read is in it, or over.
  expect(merged([], news, 60_000)).toEqual([])
})

it('keeps the counters of the list while the path is the same', () => {
  const counted = flow('a', { sent: { packets: 1, bytes: 60 } })
  expect(merged([counted], [{ flow: flow('a'), at: 0 }], 0)).toEqual([counted])
  expect(merged([counted], [{ flow: flow('a', { path_changes: 1 }), at: 0 }], 0)[0]?.sent).toBeNull()
})

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

it('draws what the stream says, and says when it breaks', async () => {
  let take: (lines: unknown[]) => void = () => undefined
  let end: () => void = () => undefined
  const stream = new FlowStream((_, taking) => {
    take = taking
    return new Promise((resolve) => (end = resolve))
  })
  const stop = stream.subscribe(() => undefined)
  take([{ event: 'heartbeat' }, { event: 'begun', flow: flow('a') }, { event: 'lost', lines: 3 }])
  expect(stream.snapshot().news).toEqual([])
  vi.advanceTimersByTime(500)
  expect(stream.snapshot().news.map(({ flow: each }) => each.flow_id)).toEqual(['a'])
  end()
  await vi.advanceTimersByTimeAsync(0)
  expect(stream.snapshot().error).not.toBeNull()
  // It is read again; a sign of life ends the error.
  await vi.advanceTimersByTimeAsync(2500)
  take([{ event: 'heartbeat' }])
  vi.advanceTimersByTime(500)
  expect(stream.snapshot().error).toBeNull()
  stop()
})
