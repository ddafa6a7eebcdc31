import { describe, expect, it } from 'vitest'
import type { Schemas } from '@/api/client'
import { beginOf, firstKnown, timelineOf, troublesOf, type TimelineInput } from './timeline'

const T = Date.parse('2026-01-01T10:00:00Z')
const at = (minutes: number) => new Date(T + minutes * 60_000).toISOString()
const ms = (minutes: number) => T + minutes * 60_000

function decision(
  minute: number,
  from: string | null,
  to: string | null,
  fields: Partial<Schemas['UplinkDecision']> = {},
): Schemas['UplinkDecision'] {
  return {
    time: at(minute),
    uplink: to ?? 'none',
    from,
    to,
    reason: '',
    applied: true,
    kernel_agrees_at: at(minute),
    ...fields,
  }
}

function input(fields: Partial<TimelineInput>): TimelineInput {
  return {
    uplinks: [
      { name: 'fibre', interface: 'eth0', enabled: true },
      { name: 'dsl', interface: 'eth1', enabled: true },
    ],
    manager: { active: 'dsl', decisions: [], flap_pins: [], egress_legs: [] },
    health: [],
    recorded: new Map(),
    from: ms(0),
    now: ms(60),
    ...fields,
  }
}

const manager = (fields: Partial<TimelineInput['manager']>): TimelineInput['manager'] => ({
  active: 'dsl',
  decisions: [],
  flap_pins: [],
  egress_legs: [],
  ...fields,
})

describe('the timeline of uplinks', () => {
  it('shows who was active by the decisions that were made', () => {
    const { rows, kernel, changes } = timelineOf(
      input({
        manager: manager({
          decisions: [
            decision(40, 'dsl', 'fibre', { applied: false, kernel_agrees_at: null }),
            decision(20, 'fibre', 'dsl'),
            decision(10, null, 'fibre'),
          ],
        }),
      }),
    )
    expect(rows[0]?.spans).toEqual([
      { from: ms(10), to: ms(20), kind: 'active' },
      { from: ms(20), to: ms(60), kind: 'standby' },
    ])
    expect(rows[1]?.spans).toEqual([
      { from: ms(10), to: ms(20), kind: 'standby' },
      { from: ms(20), to: ms(60), kind: 'active' },
    ])
    expect(kernel.map((span) => span.uplink)).toEqual(['fibre', 'dsl'])
    expect(changes.map((change) => change.number)).toEqual([1, 2])
  })

  it('draws nothing for a time of which nothing is known', () => {
    const { rows, kernel } = timelineOf(input({}))
    expect(rows.map((row) => row.spans)).toEqual([[], []])
    expect(kernel).toEqual([])
  })

  it('takes the present state since the time that the daemon says', () => {
    const { rows } = timelineOf(
      input({
        manager: manager({ decisions: [decision(20, 'fibre', 'dsl')] }),
        health: [{ uplink: 'fibre', interface: 'eth0', state: 'offline', since: at(19) }],
      }),
    )
    expect(rows[0]?.spans).toEqual([
      { from: ms(0), to: ms(19), kind: 'active' },
      { from: ms(19), to: ms(60), kind: 'offline' },
    ])
  })

  it('takes earlier states and roles from the record', () => {
    const { rows } = timelineOf(
      input({
        manager: manager({ active: 'fibre' }),
        recorded: new Map([
          [
            'fibre',
            [
              { from: at(5), to: at(10), state: 'online' as const, active: false },
              { from: at(10), to: at(30), state: 'degraded' as const, active: true },
              { from: at(30), to: at(50), state: 'online' as const, active: true },
            ],
          ],
        ]),
        health: [{ uplink: 'fibre', interface: 'eth0', state: 'offline', since: at(55) }],
      }),
    )
    expect(rows[0]?.spans).toEqual([
      { from: ms(5), to: ms(10), kind: 'standby' },
      { from: ms(10), to: ms(30), kind: 'degraded' },
      { from: ms(30), to: ms(55), kind: 'active' },
      { from: ms(55), to: ms(60), kind: 'offline' },
    ])
  })

  it('holds a pinned uplink from the change away from it until the pin ends', () => {
    const { rows } = timelineOf(
      input({
        manager: manager({
          decisions: [decision(20, 'fibre', 'dsl')],
          flap_pins: [{ uplink: 'fibre', count: 1, pinned_until: at(50) }],
        }),
      }),
    )
    expect(rows[0]?.spans).toContainEqual({ from: ms(20), to: ms(50), kind: 'held' })
  })

  it('keeps an uplink that is not configured any more while it was active', () => {
    const { rows } = timelineOf(
      input({
        uplinks: [{ name: '', interface: 'eth0', enabled: true }],
        manager: manager({
          active: null,
          decisions: [
            decision(30, null, null, { applied: false, kernel_agrees_at: null }),
            decision(20, null, 'cable'),
          ],
        }),
      }),
    )
    expect(rows.map((row) => [row.uplink, row.configured])).toEqual([
      ['eth0', true],
      ['cable', false],
    ])
    expect(rows[1]?.spans).toEqual([{ from: ms(20), to: ms(30), kind: 'active' }])
  })

  it('knows a single uplink from the last decision on', () => {
    const leg = { uplink: 'eth0', table: 1, mark: '0x1', weight: 1, flows: 0, installed: true }
    const none = decision(50, null, null, { applied: false, kernel_agrees_at: null })
    const { rows, kernel } = timelineOf(
      input({
        uplinks: [{ name: '', interface: 'eth0', enabled: true }],
        manager: manager({ active: null, egress_legs: [leg], decisions: [none] }),
        health: [{ uplink: 'eth0', interface: 'eth0', state: 'connecting', since: null }],
      }),
    )
    expect(rows[0]?.spans).toEqual([{ from: ms(50), to: ms(60), kind: 'only' }])
    expect(kernel).toEqual([{ from: ms(50), to: ms(60), uplink: 'eth0' }])
  })
})

it('the drawing begins shortly before the first thing that is known', () => {
  const first = firstKnown(input({ manager: manager({ decisions: [decision(0, null, 'dsl')] }) }))
  expect(first).toBe(ms(0))
  expect(beginOf(first, 86_400_000, ms(60))).toBe(ms(0) - 60 * 60_000 * 0.03)
  expect(beginOf(first, 1_800_000, ms(60))).toBe(ms(30))
  expect(beginOf(null, 86_400_000, ms(60))).toBe(ms(50))
})

describe('the troubles of a line', () => {
  const minute = (minutes: number, latency_ms: number | null, loss_pct: number | null = 0) => ({
    at: at(minutes),
    latency_ms,
    loss_pct,
  })
  it('are slow, lossy and silent minutes, neighbours joined', () => {
    expect(
      troublesOf([
        minute(0, 9),
        minute(1, 330, 40),
        minute(2, 120, 62),
        minute(3, null, 100),
        minute(4, null, 100),
        minute(5, 9),
        minute(6, 9, 20),
        minute(9, 9, 20),
        minute(10, 11),
      ]),
    ).toEqual([
      { at: ms(1), latency: 330, loss: 62 },
      { at: ms(3), latency: null, loss: 100 },
      { at: ms(6), latency: 9, loss: 20 },
      { at: ms(9), latency: 9, loss: 20 },
    ])
  })
  it('are none on a steady line', () => {
    expect(troublesOf([minute(0, 0.4), minute(1, 0.9), minute(2, 3)])).toEqual([])
    expect(troublesOf([])).toEqual([])
  })
})
