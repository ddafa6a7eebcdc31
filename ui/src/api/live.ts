// Events of the daemon. While the stream is open, data that events announce is read when they say so; without the stream
// it is polled.

import type { QueryClient } from '@tanstack/react-query'

/** Longest pause between two reads while the daemon does not answer, in milliseconds. */
const LONGEST = 30_000

class Live {
  open = false
  private source: EventSource | null = null
  private timer: number | undefined

  /** Follows the stream until the returned function is called. The browser connects again by itself. */
  follow(queries: QueryClient): () => void {
    const source = new EventSource('/api/v1/events')
    this.source = source
    source.onopen = () => {
      this.open = true
    }
    source.onerror = () => {
      this.open = false
    }
    const read = () => {
      // Several events of one change make one read.
      window.clearTimeout(this.timer)
      this.timer = window.setTimeout(() => {
        if (!document.hidden) void queries.invalidateQueries({ refetchType: 'active' })
      }, 150)
    }
    for (const kind of ['revision', 'status', 'alert']) source.addEventListener(kind, read)
    return () => {
      source.close()
      window.clearTimeout(this.timer)
      if (this.source === source) this.open = false
    }
  }

  /** Pause before the next read. It grows while the daemon does not answer. */
  pause(every: number | false, failures: number): number | false {
    if (every === false) return false
    return failures === 0 ? every : Math.min(LONGEST, Math.max(2000, every) * 2 ** Math.min(failures, 5))
  }
}

export const live = new Live()
