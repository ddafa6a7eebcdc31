import { describe, expect, it } from 'vitest'
import type { Schemas } from '@/api/client'
import { bandWidth, layOut, NODE, portOffset, spread } from './flow-layout'
import {
  buildFlow,
  countersOf,
  hopState,
  MOST_ROWS,
  tunnelState,
  type FlowInput,
  type Words,
} from './flow-model'

const words: Words = {
  devices: (count) => `${count} devices`,
  deviceList: (names, more) => [...names, more > 0 ? `+${more}` : ''].filter(Boolean).join(', '),
  everything: 'all',
  source: (type) => type,
  exceptionUntil: () => 'until',
  noPolicy: 'without',
  noPolicyName: 'no policy',
  noPolicyDetail: 'direct',
  origin: (origin) => origin,
  blocked: 'blocked',
  policyDevices: (count) => `${count} devices`,
  usableHops: (usable, all) => `${usable} of ${all}`,
  noHops: 'no hops',
  hopDown: (reason) => reason || 'down',
  rate: (rate) => `${rate} B/s`,
  uplink: (state) => state,
}

type Path = Schemas['PathPolicy']
type Graph = Schemas['PathGraph']

const vpn = (target: string, usable = true): Schemas['PolicyHop'] => ({
  type: 'vpn',
  target,
  usable,
  reason: usable ? '' : 'no handshake',
})

function path(id: string, priority: number, change: Partial<Path> = {}): Path {
  return {
    id,
    origin: 'policy',
    name: id,
    priority,
    fail_policy: 'fail-closed',
    status: 'active',
    devices: 1,
    decision: 'tunnel',
    via: 'wg-a',
    when_down: 'block',
    hops: [vpn('wg-a')],
    active_hop: { type: 'vpn', target: 'wg-a' },
    expires_at: null,
    packets: 0,
    bytes: 0,
    ...change,
  }
}

function hop(target: string, change: Partial<Schemas['PathHop']> = {}): Schemas['PathHop'] {
  return {
    type: 'vpn',
    target,
    id: target,
    status: 'up',
    usable: true,
    reason: '',
    since: null,
    policies: [],
    devices: 1,
    uplink: 'eth0',
    last_handshake: null,
    latency_ms: null,
    rx_bytes: 1,
    tx_bytes: 2,
    ...change,
  }
}

const uplink: Schemas['PathUplink'] = {
  name: 'fibre',
  interface: 'eth0',
  state: 'online',
  since: null,
  active: true,
  direct_devices: 0,
  devices: 1,
  rx_bytes: 5,
  tx_bytes: 6,
  addresses: [],
}

function graph(policies: Path[], change: Partial<Graph> = {}): Graph {
  return {
    devices: 1,
    counts: {
      protected: 1,
      through_policy: 1,
      blocked: 0,
      direct_by_exception: 0,
      failed_open: 0,
      records_silent: 0,
      no_policy: 0,
    },
    policies,
    unmatched: { devices: 0, blocked: 0, direct: 0 },
    hops: [hop('wg-a'), hop('wg-b')],
    uplinks: [uplink],
    ...change,
  }
}

function stored(id: string, change: Partial<Schemas['RoutingPolicy']> = {}) {
  return { id, source_type: 'device', source_value: 'd1', ...change } as Schemas['RoutingPolicy']
}

function input(of: Graph, change: Partial<FlowInput> = {}): FlowInput {
  return {
    graph: of,
    policies: [],
    devices: new Map([['d1', { id: 'd1', name: 'laptop', ips: ['192.0.2.1'] } as Schemas['Device']]]),
    groups: new Map(),
    exceptions: [],
    rate: () => null,
    words,
    ...change,
  }
}

describe('buildFlow', () => {
  it('keeps the order of evaluation and draws only hops that a drawn policy names', () => {
    const flow = buildFlow(input(graph([path('a', 10), path('b', 20)])))
    expect(flow.rows.map((row) => row.policy.id)).toEqual(['policy.a', 'policy.b'])
    expect(flow.hops.map((each) => [each.id, each.uplink])).toEqual([['vpn:wg-a', 'fibre']])
    expect(flow.hidden).toBe(0)
  })
  it('names the source by the stored policy, else by the number of devices', () => {
    const flow = buildFlow(
      input(graph([path('a', 10), path('b', 20, { devices: 3 })]), { policies: [stored('a')] }),
    )
    expect(flow.rows.map((row) => row.source.name)).toEqual(['laptop', '3 devices'])
    expect(flow.rows[0]?.source.to).toBe('/devices/d1')
    expect(flow.rows[1]?.source).toMatchObject({ to: '/devices', search: { policy: 'b' } })
  })
  it('draws a device with an exception at the exception only', () => {
    const exception = { id: 'e', type: 'temporary-direct', device_id: 'd1' } as Schemas['Exception']
    const drawn = graph([
      path('e', -1, { origin: 'exception', decision: 'direct' }),
      path('a', 10, { devices: 0 }),
    ])
    const flow = buildFlow(input(drawn, { policies: [stored('a')], exceptions: [exception] }))
    expect(flow.rows.map((row) => row.source.name)).toEqual(['laptop', '0 devices'])
  })
  it('draws a blocked policy to its hop, unusable', () => {
    const flow = buildFlow(
      input(
        graph(
          [
            path('a', 10, {
              status: 'blocked',
              decision: 'block',
              via: null,
              active_hop: null,
              hops: [vpn('wg-a', false)],
            }),
          ],
          { hops: [hop('wg-a', { usable: false, status: 'degraded', reason: 'no handshake' })] },
        ),
      ),
    )
    expect(flow.rows[0]).toMatchObject({ edge: 'blocked', direct: null, hops: [{ edge: 'none' }] })
    expect(flow.hops[0]).toMatchObject({ state: 'down', detail: 'no handshake', edge: 'none' })
    const layout = layOut(flow)
    expect(layout.stops).toHaveLength(1)
    expect(layout.lines.filter((line) => line.edge === 'blocked')).toHaveLength(2)
  })
  it('blocks a policy whose plan is not in the kernel, whatever it decides', () => {
    expect(buildFlow(input(graph([path('a', 10, { status: 'error' })]))).rows[0]?.edge).toBe('blocked')
  })
  it('draws a policy that fails open as direct past its hop', () => {
    const flow = buildFlow(
      input(
        graph([
          path('a', 10, {
            status: 'fallback',
            decision: 'direct',
            via: 'default',
            active_hop: null,
            hops: [vpn('wg-a', false)],
          }),
        ]),
      ),
    )
    expect(flow.rows[0]).toMatchObject({ edge: 'direct', direct: 'fibre', hops: [{ edge: 'none' }] })
  })
  it('uses only the active hop of a failover, and all of a split', () => {
    const hops = [vpn('wg-a'), vpn('wg-b')]
    const one = buildFlow(input(graph([path('a', 10, { hops })])))
    expect(one.rows[0]?.hops.map((each) => each.edge)).toEqual(['ok', 'none'])
    const split = buildFlow(input(graph([path('a', 10, { hops, via: 'wg-a + wg-b' })])))
    expect(split.rows[0]?.hops.map((each) => each.edge)).toEqual(['ok', 'ok'])
  })
  it('folds very many policies, those without devices first', () => {
    const policies = Array.from({ length: 500 }, (_, index) =>
      path(`p${index}`, index, { devices: index % 50 === 49 ? 10_000 : 0 }),
    )
    const unmatched = { devices: 9, blocked: 0, direct: 9 }
    const started = performance.now()
    const flow = buildFlow(input(graph(policies, { unmatched })))
    layOut(flow)
    expect(performance.now() - started).toBeLessThan(500)
    expect(flow.rows).toHaveLength(MOST_ROWS + 1)
    expect(flow.rows.filter((row) => row.source.name === '10000 devices')).toHaveLength(10)
    expect(flow.hidden).toBe(500 - MOST_ROWS)
  })
  it('leads from an exception to its device, and draws devices without a policy last', () => {
    const exception = { id: 'e', type: 'temporary-direct', device_id: 'd1' } as Schemas['Exception']
    const flow = buildFlow(
      input(
        graph(
          [
            path('e', 0, {
              origin: 'exception',
              decision: 'direct',
              via: 'default',
              hops: [],
              active_hop: null,
            }),
            path('a', 1),
          ],
          { unmatched: { devices: 5, blocked: 2, direct: 3 } },
        ),
        { exceptions: [exception] },
      ),
    )
    expect(flow.rows.map((row) => row.edge)).toEqual(['direct', 'ok', 'direct', 'blocked'])
    expect(flow.rows[0]?.policy.to).toBe('/devices/d1')
    expect(flow.rows[2]?.source).toMatchObject({ name: '3 devices', search: { policy: 'none' } })
  })
  it('counts hops, policies and uplinks, and leaves out what is not counted', () => {
    const of = graph([path('a', 1, { bytes: null })], { hops: [hop('p', { rx_bytes: null })] })
    expect(countersOf(of)).toEqual([['uplink.fibre', [5, 6]]])
  })
  it('never shows a hop that policies cannot use as working', () => {
    expect(hopState({ usable: false, status: 'up' })).toBe('down')
    expect(hopState({ usable: false, status: 'disabled' })).toBe('idle')
    expect(hopState({ usable: true, status: 'up' })).toBe('ok')
  })
})

describe('layOut', () => {
  it('keeps nodes of a column apart', () => {
    const names = ['wg-a', 'wg-b', 'wg-c', 'wg-d']
    const flow = buildFlow(
      input(
        graph(
          names.map((name, index) => path(name, index, { hops: [vpn(name)], via: name })),
          { hops: names.map((name) => hop(name)) },
        ),
      ),
    )
    const { nodes } = layOut(flow)
    for (const column of new Set(nodes.map((node) => node.x))) {
      const ys = nodes
        .filter((node) => node.x === column)
        .map((node) => node.y)
        .sort((a, b) => a - b)
      ys.forEach((y, index) => {
        if (index > 0) expect(y - (ys[index - 1] ?? 0)).toBeGreaterThanOrEqual(NODE)
      })
    }
  })
  it('draws bands only where there are counters', () => {
    expect(bandWidth(null, 100)).toBe(0)
    expect(bandWidth(0, 100)).toBe(0)
    expect(bandWidth(100, 100)).toBe(20)
    expect(bandWidth(1, 10_000)).toBeLessThan(4)
    const without = layOut(buildFlow(input(graph([path('a', 1)]))))
    expect(without.lines.every((line) => line.band === 0)).toBe(true)
    const rates = layOut(buildFlow(input(graph([path('a', 1)]), { rate: () => 1000 })))
    expect(rates.lines.some((line) => line.band === 20)).toBe(true)
  })
  it('moves what is wished to one position apart', () => {
    expect([
      ...spread(
        [
          { id: 'a', y: 100 },
          { id: 'b', y: 100 },
          { id: 'c', y: Infinity },
        ],
        54,
      ).values(),
    ]).toEqual([100, 154, 208])
  })
})

describe('portOffset', () => {
  it('orders arriving edges by where they come from, within the node', () => {
    const arriving = [
      { from: 'low', y: 200 },
      { from: 'high', y: 10 },
      { from: 'middle', y: 100 },
    ]
    expect(['high', 'middle', 'low'].map((from) => portOffset(arriving, from))).toEqual([-8, 0, 8])
    const many = Array.from({ length: 50 }, (_, index) => ({ from: String(index), y: index }))
    expect(Math.abs(portOffset(many, '0'))).toBeLessThanOrEqual(14)
  })
})

describe('tunnelState', () => {
  it('reads degraded as down, and taken down by a user as idle', () => {
    expect(tunnelState({ status: 'degraded', enabled: true, admin_state: 'up' })).toBe('down')
    expect(tunnelState({ status: 'down', enabled: true, admin_state: 'down' })).toBe('idle')
    expect(tunnelState({ status: 'up', enabled: true, admin_state: 'up' })).toBe('ok')
  })
})
