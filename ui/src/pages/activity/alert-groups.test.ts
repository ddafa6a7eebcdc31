import { describe, expect, it } from 'vitest'
import { groupsOf, lastOf, type Alert } from './alert-groups'

const alert = (id: number, change: Partial<Alert> = {}): Alert => ({
  id,
  kind: 'tunnel_down',
  severity: 'warning',
  status: 'active',
  title: `Alert ${id}`,
  message: '',
  subject: String(id),
  source: 'tunnels',
  resource_type: 'tunnel',
  resource_id: null,
  device_id: null,
  labels: {},
  fingerprint: String(id),
  count: 1,
  first_seen: `2026-01-01T00:00:0${id}Z`,
  last_seen: `2026-01-01T00:00:0${id}Z`,
  acknowledged_at: null,
  acknowledged_by: null,
  resolved_at: null,
  resolved_by: null,
  auto_resolved: false,
  caused_by: null,
  muted_until: null,
  muted_by: null,
  ...change,
})

const shapeOf = (alerts: Alert[]) =>
  groupsOf(alerts).map((group) => [group.alert.id, group.consequences.map((each) => each.id)])

describe('groups of alerts', () => {
  it('has consequences of consequences below their first cause, whatever their order', () => {
    const list = [alert(3, { caused_by: 2 }), alert(1), alert(2, { caused_by: 1 }), alert(4)]
    expect(shapeOf(list)).toEqual([
      [4, []],
      [1, [3, 2]],
    ])
  })
  it('has an alert whose cause is not open on its own', () => {
    expect(shapeOf([alert(2, { caused_by: 1 })])).toEqual([[2, []]])
  })
  it('has each alert once, also if two name each other', () => {
    const groups = groupsOf([alert(1, { caused_by: 2 }), alert(2, { caused_by: 1 })])
    const all = groups.flatMap((group) => [group.alert.id, ...group.consequences.map((each) => each.id)])
    expect(all.sort()).toEqual([1, 2])
  })
  it('has the most severe first', () => {
    const list = [alert(1, { severity: 'info' }), alert(2), alert(3, { severity: 'critical' })]
    expect(shapeOf(list).map(([id]) => id)).toEqual([3, 2, 1])
  })
  it('knows when each kind was raised last', () => {
    const last = lastOf([alert(1), alert(3), alert(2, { kind: 'wan_down' })])
    expect(Object.fromEntries(last)).toEqual({
      tunnel_down: '2026-01-01T00:00:03Z',
      wan_down: '2026-01-01T00:00:02Z',
    })
  })
})
