// Events of the daemon. While the stream is open, data that events announce is read when they say so; without the stream
// it is polled. Active alerts come by the stream only, and are kept here.

import type { QueryClient } from '@tanstack/react-query'
import { useSyncExternalStore } from 'react'
import { isQuiet, type LiveAlerts } from './alerts'
import { EventHub, SIGN_OF_LIFE, type ToHub, type ToTab } from './event-hub'

/** Longest pause between two reads while the daemon does not answer, in milliseconds. */
const LONGEST = 30_000
/** Signs of life that the shared stream may leave unanswered before this tab opens one of its own. */
const MOST_UNANSWERED = 2

interface Hub {
  send: (message: ToHub) => void
  end: () => void
}

class Live {
  open = false
  private hub: Hub | null = null
  private unanswered = 0
  private reading: number | undefined
  private revised = false
  private alerts: LiveAlerts = { known: false, list: [] }
  private listeners = new Set<() => void>()

  /** Follows the stream until the returned function is called. */
  follow(queries: QueryClient): () => void {
    const receive = (message: ToTab) => {
      this.unanswered = 0
      if (message.type === 'state') {
        this.open = message.open
        this.setAlerts(message.alerts)
      } else if (message.name === 'revision') {
        this.revised = true
        this.readSoon(queries)
      } else if (message.name === 'alert' || !isQuiet(message.data)) {
        // After a periodic run that found nothing to do, data is read with the next poll.
        this.readSoon(queries)
      }
    }
    const own = () => {
      this.hub?.end()
      this.hub = ownHub(receive)
      this.hub.send('visible')
    }
    const appear = () => this.hub?.send(document.hidden ? 'hidden' : 'visible')
    const leave = () => this.hub?.send('hidden')
    const alive = window.setInterval(() => {
      if (document.hidden) return
      if (this.unanswered >= MOST_UNANSWERED) own()
      this.unanswered += 1
      this.hub?.send('alive')
    }, SIGN_OF_LIFE)
    this.unanswered = 0
    this.hub = sharedHub(receive, own) ?? ownHub(receive)
    appear()
    document.addEventListener('visibilitychange', appear)
    window.addEventListener('pageshow', appear)
    window.addEventListener('pagehide', leave)
    return () => {
      leave()
      window.clearInterval(alive)
      window.clearTimeout(this.reading)
      document.removeEventListener('visibilitychange', appear)
      window.removeEventListener('pageshow', appear)
      window.removeEventListener('pagehide', leave)
      this.hub?.end()
      this.hub = null
      this.open = false
    }
  }

  /** Reads what is shown. Several events of one change make one read. */
  private readSoon(queries: QueryClient) {
    window.clearTimeout(this.reading)
    this.reading = window.setTimeout(() => {
      if (document.hidden) return
      const costly = this.revised
      this.revised = false
      void queries.invalidateQueries({
        refetchType: 'active',
        // Answers that the daemon must compute are read again after a change only.
        predicate: (query) => costly || query.meta?.costly !== true,
      })
    }, 150)
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

/** The stream that all tabs of the browser share. Null where the browser has no shared workers. */
function sharedHub(receive: (message: ToTab) => void, failed: () => void): Hub | null {
  if (typeof SharedWorker === 'undefined') return null
  try {
    const worker = new SharedWorker(new URL('./event-worker.ts', import.meta.url), { type: 'module' })
    worker.onerror = failed
    worker.port.onmessage = ({ data }: MessageEvent<ToTab>) => receive(data)
    return {
      send: (message) => worker.port.postMessage(message),
      end: () => {
        worker.onerror = null
        worker.port.onmessage = null
        worker.port.postMessage('hidden' satisfies ToHub)
      },
    }
  } catch {
    return null
  }
}

/** A stream of this tab alone, open while the tab is visible. */
function ownHub(receive: (message: ToTab) => void): Hub {
  const hub = new EventHub()
  let ended = false
  const tab = {
    send: (message: ToTab) => {
      if (!ended) receive(message)
    },
  }
  return {
    send: (message) => hub.receive(tab, message),
    end: () => {
      ended = true
      hub.receive(tab, 'hidden')
    },
  }
}

export const live = new Live()

/** The active alerts. */
export function useAlerts(): LiveAlerts {
  return useSyncExternalStore(live.subscribe, live.currentAlerts)
}
