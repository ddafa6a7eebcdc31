// The active alerts, as the event stream sends them.

/** An alert as the stream sends it. */
export interface LiveAlert {
  kind: string
  /** Subject of the alert, among those of its kind. */
  subject: string
  message: string
  since: string
  id?: number
  /** The alert that explains this one. */
  caused_by?: number
}

export interface LiveAlerts {
  /** The stream is open, so the list is complete. */
  known: boolean
  /** Newest first. */
  list: readonly LiveAlert[]
}

/** Reads the data of an `alert` event. Null if it is none. */
export function parseAlert(data: unknown): (LiveAlert & { active: boolean }) | null {
  try {
    const read = JSON.parse(String(data)) as Partial<LiveAlert> & { active?: unknown }
    if (typeof read.kind !== 'string') return null
    return {
      kind: read.kind,
      subject: String(read.subject ?? ''),
      message: String(read.message ?? ''),
      since: String(read.since ?? ''),
      ...(typeof read.id === 'number' ? { id: read.id } : {}),
      ...(typeof read.caused_by === 'number' ? { caused_by: read.caused_by } : {}),
      active: read.active !== false,
    }
  } catch {
    return null
  }
}

/** The alerts that no other one explains. */
export function causesOf(list: readonly LiveAlert[]): readonly LiveAlert[] {
  const ids = new Set(list.map((alert) => alert.id))
  return list.filter(({ caused_by: cause }) => cause === undefined || !ids.has(cause))
}

/** Reports whether a `status` event tells of a periodic run without trouble, after which nothing is new. */
export function isQuiet(data: unknown): boolean {
  try {
    const read = JSON.parse(String(data)) as { reason?: unknown; ok?: unknown }
    return read.reason === 'interval' && read.ok === true
  } catch {
    return false
  }
}

/** The list after an alert became active or ended. */
export function withAlert(
  list: readonly LiveAlert[],
  { active, ...alert }: LiveAlert & { active: boolean },
): readonly LiveAlert[] {
  const others = list.filter((each) => each.kind !== alert.kind || each.subject !== alert.subject)
  if (!active) return others
  return [alert, ...others].sort((one, other) => other.since.localeCompare(one.since))
}
