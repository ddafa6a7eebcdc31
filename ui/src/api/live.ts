// Events of the daemon. While the stream is open, data that events announce is read when they say so; without the stream
// it is polled. Active alerts come by the stream only, and are kept here.

import type { QueryClient } from '@tanstack/react-query'
import { useSyncExternalStore } from 'react'

/** Longest pause between two reads while the daemon does not answer, in milliseconds. */
const LONGEST = 30_000

/** Time in milliseconds in which the active alerts arrive after the stream has opened. */
const FIRST_ALERTS = 400

/** Pause before the stream is opened again where the browser gives up, in milliseconds. */
const REOPEN = 2_000

/** An alert as the stream sends it. */
export interface LiveAlert {
  kind: string
  /** Subject of the alert, among those of its kind. */
  subject: string
  message: string
  since: string
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
      active: read.active !== false,
    }
  } catch {
    return null
  }
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

class Live {
  open = false
  private source: EventSource | null = null
  private reopening: number | undefined
  private refusals = 0
  private timer: number | undefined
  private opening: number | undefined
  private alerts: LiveAlerts = { known: false, list: [] }
  private listeners = new Set<() => void>()

  /** Follows the stream until the returned function is called. */
  follow(queries: QueryClient): () => void {
    const refused = () => {
      // A refusal is for good to a browser, such as one of a session that has just ended.
      window.clearTimeout(this.reopening)
      const pause = Math.min(LONGEST, REOPEN * 2 ** this.refusals)
      this.refusals = Math.min(this.refusals + 1, 5)
      this.reopening = window.setTimeout(() => {
        close()
        close = this.connect(queries, refused)
      }, pause)
    }
    let close = this.connect(queries, refused)
    return () => {
      window.clearTimeout(this.reopening)
      close()
    }
  }

  /** Opens the stream. The browser connects again by itself unless the daemon refuses. */
  private connect(queries: QueryClient, refused: () => void): () => void {
    const source = new EventSource('/api/v1/events')
    this.source = source
    source.onopen = () => {
      this.open = true
      this.refusals = 0
      // The active alerts are sent again; those that ended meanwhile are not.
      this.setAlerts({ known: false, list: [] })
      window.clearTimeout(this.opening)
      this.opening = window.setTimeout(
        () => this.setAlerts({ known: true, list: this.alerts.list }),
        FIRST_ALERTS,
      )
    }
    source.onerror = () => {
      this.open = false
      window.clearTimeout(this.opening)
      this.setAlerts({ known: false, list: this.alerts.list })
      if (source.readyState === source.CLOSED) refused()
    }
    let revised = false
    const read = () => {
      // Several events of one change make one read.
      window.clearTimeout(this.timer)
      this.timer = window.setTimeout(() => {
        if (document.hidden) return
        const costly = revised
        revised = false
        void queries.invalidateQueries({
          refetchType: 'active',
          // Answers that the daemon must compute are read again after a change only.
          predicate: (query) => costly || query.meta?.costly !== true,
        })
      }, 150)
    }
    source.addEventListener('revision', () => {
      revised = true
      read()
    })
    source.addEventListener('status', (event) => {
      // A periodic run that found nothing to do is read with the next poll.
      if (!isQuiet(event.data)) read()
    })
    source.addEventListener('alert', (event) => {
      const alert = parseAlert(event.data)
      if (alert) this.setAlerts({ known: this.alerts.known, list: withAlert(this.alerts.list, alert) })
      read()
    })
    return () => {
      source.close()
      window.clearTimeout(this.timer)
      window.clearTimeout(this.opening)
      if (this.source === source) this.open = false
    }
  }

  /** Pause before the next read. It grows while the daemon does not answer. */
  pause(every: number | false, failures: number): number | false {
    if (every === false) return false
    return failures === 0 ? every : Math.min(LONGEST, Math.max(2000, every) * 2 ** Math.min(failures, 5))
  }

  currentAlerts = () => this.alerts

  subscribe = (listener: () => void) => {
    this.listeners.add(listener)
    return () => void this.listeners.delete(listener)
  }

  private setAlerts(alerts: LiveAlerts) {
    this.alerts = alerts
    for (const listener of this.listeners) listener()
  }
}

export const live = new Live()

/** The active alerts. */
export function useAlerts(): LiveAlerts {
  return useSyncExternalStore(live.subscribe, live.currentAlerts)
}
