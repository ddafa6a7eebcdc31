import { describe, expect, it } from 'vitest'
import type { Schemas } from '@/api/client'
import { bandWidth, layOut, NODE, portOffset, spread } from './flow-layout'
import { buildFlow, MOST_ROWS, tunnelState, type FlowInput, type Words } from './flow-model'

const words: Words = {
  devices: (count) => `${count} devices`,
  deviceList: (names, more) => [...names, more > 0 ? `+${more}` : ''].filter(Boolean).join(', '),
  everything: 'all',
  source: (type) => type,
  exception: (type) => type,
  exceptionUntil: () => 'until',
  noPolicy: 'without',
  noPolicyName: 'no policy',
  noPolicyDetail: 'direct',
  failPolicy: (policy) => policy,
  blocked: 'blocked',
  usableHops: (usable, all) => `${usable} of ${all}`,
  noHops: 'no hops',
  tunnelDown: (reason) => reason ?? 'down',
  tunnelIdle: 'idle',
  rate: (rate) => `${rate} B/s`,
  uplink: (state) => state,
  unknownTarget: 'missing',
}

function policy(id: string, priority: number, change: Partial<Schemas['RoutingPolicy']> = {}) {
  return {
    id,
    name: id,
    priority,
    created_at: '2026-01-01T00:00:00Z',
    enabled: true,
    routing: true,
    status: 'active',
    source_type: 'device',
    source_value: 'd1',
    hops: [{ type: 'vpn', target: 'wg-a' }],
    active_hop: { type: 'vpn', target: 'wg-a' },
    fail_policy: 'fail-closed',
    splitting: false,
    effective: null,
    ...change,
  } as Schemas['RoutingPolicy']
}

function tunnel(name: string, status: Schemas['TunnelStatus'] = 'up') {
  return {
    id: name,
    name,
    type: 'wireguard',
    status,
    enabled: true,
    admin_state: 'up',
    uplink: 'auto',
  } as Schemas['Tunnel']
}

function input(change: Partial<FlowInput> = {}): FlowInput {
  return {
    policies: [],
    devices: new Map([['d1', { id: 'd1', name: 'laptop', ips: ['192.0.2.1'] } as Schemas['Device']]]),
    groups: new Map(),
    exceptions: [],
    tunnels: [tunnel('wg-a'), tunnel('wg-b')],
    uplinks: [{ uplink: 'fibre', interface: 'eth0', state: 'online' } as Schemas['UplinkHealth']],
    activeUplink: 'fibre',
    noPolicyDevices: 0,
    rate: () => null,
    words,
    ...change,
  }
}

describe('buildFlow', () => {
  it('orders policies by priority and leaves out those that do not steer', () => {
    const flow = buildFlow(
      input({ policies: [policy('b', 20), policy('a', 10), policy('off', 5, { enabled: false })] }),
    )
    expect(flow.rows.map((row) => row.policy.id)).toEqual(['policy.a', 'policy.b'])
    expect(flow.hidden).toBe(1)
    expect(flow.hops.map((hop) => [hop.id, hop.uplink])).toEqual([['vpn:wg-a', 'fibre']])
  })
  it('draws a blocked policy to its hop, unusable', () => {
    const flow = buildFlow(
      input({
        policies: [policy('a', 10, { status: 'blocked', active_hop: null })],
        tunnels: [tunnel('wg-a', 'degraded')],
      }),
    )
    expect(flow.rows[0]).toMatchObject({ edge: 'blocked', direct: null, hops: [{ edge: 'none' }] })
    const layout = layOut(flow)
    expect(layout.stops).toHaveLength(1)
    expect(layout.lines.filter((line) => line.edge === 'blocked')).toHaveLength(2)
  })
  it('draws a policy that fails open as direct', () => {
    const flow = buildFlow(input({ policies: [policy('a', 10, { status: 'fallback', active_hop: null })] }))
    expect(flow.rows[0]).toMatchObject({ edge: 'direct', direct: 'fibre' })
  })
  it('uses only the active hop of a failover, and all of a split', () => {
    const hops = [
      { type: 'vpn', target: 'wg-a' },
      { type: 'vpn', target: 'wg-b' },
    ] as Schemas['Hop'][]
    const one = buildFlow(input({ policies: [policy('a', 10, { hops })] }))
    expect(one.rows[0]?.hops.map((hop) => hop.edge)).toEqual(['ok', 'none'])
    const split = buildFlow(input({ policies: [policy('a', 10, { hops, splitting: true })] }))
    expect(split.rows[0]?.hops.map((hop) => hop.edge)).toEqual(['ok', 'ok'])
  })
  it('folds very many devices and policies', () => {
    const members = Array.from({ length: 10_000 }, (_, index) => `d${index}`)
    const policies = Array.from({ length: 500 }, (_, index) =>
      policy(`p${index}`, index, { source_type: 'device', source_value: members.join(',') }),
    )
    const started = performance.now()
    const flow = buildFlow(input({ policies, noPolicyDevices: 9 }))
    layOut(flow)
    expect(performance.now() - started).toBeLessThan(500)
    expect(flow.rows).toHaveLength(MOST_ROWS + 1)
    expect(flow.rows[0]?.source.name).toBe('10000 devices')
    expect(flow.hidden).toBe(500 - MOST_ROWS)
  })
  it('puts exceptions first and devices without a policy last', () => {
    const exception = {
      id: 'e',
      type: 'temporary-direct',
      device_id: 'd1',
      expires_at: null,
    } as Schemas['Exception']
    const flow = buildFlow(input({ policies: [policy('a', 1)], exceptions: [exception], noPolicyDevices: 3 }))
    expect(flow.rows.map((row) => row.edge)).toEqual(['direct', 'ok', 'direct'])
  })
})

describe('layOut', () => {
  it('keeps nodes of a column apart', () => {
    const flow = buildFlow(
      input({
        policies: ['wg-a', 'wg-b', 'wg-c', 'wg-d'].map((name, index) =>
          policy(name, index, { hops: [{ type: 'vpn', target: name }], source_value: 'd1' }),
        ),
        tunnels: ['wg-a', 'wg-b', 'wg-c', 'wg-d'].map((name) => tunnel(name)),
      }),
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
    const without = layOut(buildFlow(input({ policies: [policy('a', 1)] })))
    expect(without.lines.every((line) => line.band === 0)).toBe(true)
    const rates = layOut(buildFlow(input({ policies: [policy('a', 1)], rate: () => 1000 })))
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
