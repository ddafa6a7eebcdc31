import { describe, expect, it } from 'vitest'
import type { Schemas } from '@/api/client'
import { beginOf, spread, ticksOf, timelineOf, type TimelineInput } from './timeline'

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
    observed: [],
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

  it('takes earlier states from what this tab saw', () => {
    const { rows } = timelineOf(
      input({
        manager: manager({ active: 'fibre', decisions: [decision(0, null, 'fibre')] }),
        observed: [
          { at: ms(10), states: { fibre: 'degraded' } },
          { at: ms(30), states: { fibre: 'online' } },
        ],
        health: [{ uplink: 'fibre', interface: 'eth0', state: 'online', since: at(29) }],
      }),
    )
    expect(rows[0]?.spans.map((span) => span.kind)).toEqual(['active', 'degraded', 'active'])
    expect(rows[0]?.spans[1]).toMatchObject({ from: ms(10), to: ms(29) })
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

  it('shows a single uplink by its route since this tab looks', () => {
    const leg = { uplink: 'eth0', table: 1, mark: '0x1', weight: 1, flows: 0, installed: true }
    const { rows, kernel } = timelineOf(
      input({
        uplinks: [{ name: '', interface: 'eth0', enabled: true }],
        manager: manager({ active: null, egress_legs: [leg] }),
        observed: [{ at: ms(50), states: { eth0: 'connecting' } }],
        health: [{ uplink: 'eth0', interface: 'eth0', state: 'connecting', since: null }],
      }),
    )
    expect(rows[0]?.spans.at(-1)?.kind).toBe('only')
    expect(kernel).toEqual([{ from: ms(50), to: ms(60), uplink: 'eth0' }])
  })
})

it('ticks are round times', () => {
  expect(ticksOf(ms(1), ms(59), 4).map((time) => (time - T) / 60_000)).toEqual([15, 30, 45])
  expect(ticksOf(ms(0), ms(600), 6).length).toBeLessThanOrEqual(6)
})

it('markers are moved apart and stay inside', () => {
  expect(spread([10, 11, 12, 90], 18, 8, 100)).toEqual([10, 28, 46, 90])
  expect(spread([95, 97, 99], 18, 8, 100)).toEqual([64, 82, 100])
})

it('the drawing begins shortly before the first thing that is known', () => {
  const rest = input({ manager: manager({ decisions: [decision(0, null, 'dsl')] }) })
  expect(beginOf(rest, 86_400_000)).toBe(ms(0) - 60 * 60_000 * 0.03)
  expect(beginOf(rest, 1_800_000)).toBe(ms(30))
})
