// Open alerts, grouped by their cause.

import type { Schemas } from '@/api/client'

export type Alert = Schemas['Alert']

export interface AlertGroup {
  alert: Alert
  /** What follows from it, also by way of others. */
  consequences: Alert[]
}

const SEVERITIES: Alert['severity'][] = ['critical', 'warning', 'info']

/** Groups alerts under those that explain them. The most severe come first, and the newest of them. */
export function groupsOf(alerts: readonly Alert[]): AlertGroup[] {
  const byId = new Map(alerts.map((alert) => [alert.id, alert]))
  const groups = new Map<number, AlertGroup>()
  const groupOf = (alert: Alert) => {
    const group = groups.get(alert.id) ?? { alert, consequences: [] }
    groups.set(alert.id, group)
    return group
  }
  for (const alert of alerts) {
    const root = rootOf(alert, byId)
    const group = groupOf(root)
    if (root !== alert) group.consequences.push(alert)
  }
  const rank = ({ alert }: AlertGroup) => SEVERITIES.indexOf(alert.severity)
  return [...groups.values()].sort(
    (one, other) => rank(one) - rank(other) || other.alert.first_seen.localeCompare(one.alert.first_seen),
  )
}

/** The alert at the end of the causes that are open; of causes in a circle, the first. */
function rootOf(alert: Alert, byId: ReadonlyMap<number, Alert>): Alert {
  const passed = new Map<number, Alert>()
  let root = alert
  for (;;) {
    passed.set(root.id, root)
    const cause = root.caused_by === null ? undefined : byId.get(root.caused_by)
    if (!cause) return root
    if (passed.has(cause.id)) return passed.get(Math.min(...passed.keys())) ?? root
    root = cause
  }
}

/** When each kind was raised last. */
export function lastOf(alerts: readonly Alert[]): Map<Alert['kind'], string> {
  const last = new Map<Alert['kind'], string>()
  for (const { kind, last_seen: seen } of alerts) if (seen > (last.get(kind) ?? '')) last.set(kind, seen)
  return last
}
