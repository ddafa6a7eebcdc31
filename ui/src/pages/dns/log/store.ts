// The entries of the query log that are in memory: the newest are read again and again, older ones page by page. What a
// reader looks at does not move: new entries wait until they are taken.

import type { Schemas } from '@/api/client'

type Entry = Schemas['Entry']

export interface LogQuery {
  client?: string
  domain?: string
  status?: string
}

/** Reads a page, newest first. */
export type ReadPage = (
  query: LogQuery & { before?: string; limit: number },
  signal: AbortSignal,
) => Promise<Entry[]>

export interface LogState {
  /** Newest first. */
  entries: readonly Entry[]
  /** Newer ones that are not shown. */
  fresh: readonly Entry[]
  /** There are more new ones than were read: taking them begins a new list. */
  freshMore: boolean
  /** Nothing older is in the log. */
  end: boolean
  /** Newer entries were let go to make room. */
  trimmed: boolean
  /** Number of newer entries that were let go so far. */
  dropped: number
  /** A page is being read. */
  loading: boolean
  error: Error | null
  /** Time of the last answer. */
  readAt: number | null
}

/** Entries that are kept in memory. */
export const MOST = 10_000
/** Entries of a page. */
export const PAGE = 500
/** Entries that one look at the newest reads. */
const NEWEST = 200
const LONGEST = 30_000

const EMPTY: LogState = {
  entries: [],
  fresh: [],
  freshMore: false,
  end: false,
  trimmed: false,
  dropped: 0,
  loading: true,
  error: null,
  readAt: null,
}

export class LogStore {
  private state: LogState = EMPTY
  private listeners = new Set<() => void>()
  private timer: number | undefined
  private failures = 0
  private abort = new AbortController()
  private busy = false
  /** New entries are shown at once. */
  private follows = true
  private every = 2000

  /** With `before`, the list ends there and the newest are not read. */
  constructor(
    private readonly query: LogQuery,
    private readonly read: ReadPage,
    private readonly before?: string,
    private readonly most = MOST,
  ) {}

  subscribe = (listener: () => void) => {
    this.listeners.add(listener)
    if (this.listeners.size === 1) this.start()
    return () => {
      this.listeners.delete(listener)
      if (this.listeners.size === 0) this.stop()
    }
  }

  snapshot = () => this.state

  /** Sets how often the newest are read, and whether they are shown at once. */
  follow(follows: boolean, every: number) {
    const sooner = every < this.every
    this.follows = follows
    this.every = every
    if (follows && this.state.fresh.length > 0) this.take()
    if (sooner && this.listeners.size > 0) this.wait(0)
  }

  /** Shows the entries that wait. */
  take() {
    const { fresh, freshMore, trimmed, entries } = this.state
    if (freshMore || trimmed) {
      this.set({ entries: fresh, fresh: [], freshMore: false, trimmed: false, end: false })
      if (fresh.length === 0) void this.newest()
    } else this.set(this.cut([...fresh, ...entries], 'oldest', { fresh: [] }))
  }

  /** Reads the next page of older entries. */
  async older(): Promise<void> {
    const last = this.state.entries[this.state.entries.length - 1]
    if (this.busy || this.state.end) return
    await this.run(async (signal) => {
      const before = last ? String(last.id) : this.before
      const page = await this.read({ ...this.query, ...(before ? { before } : {}), limit: PAGE }, signal)
      this.set(this.cut([...this.state.entries, ...page], 'newest', { end: page.length < PAGE }))
    })
  }

  private start() {
    this.abort = new AbortController()
    document.addEventListener('visibilitychange', this.seen)
    if (this.before === undefined) void this.newest()
    else if (this.state.entries.length === 0) void this.older()
  }

  private stop() {
    this.abort.abort()
    this.busy = false
    window.clearTimeout(this.timer)
    document.removeEventListener('visibilitychange', this.seen)
  }

  private seen = () => {
    if (!document.hidden && this.before === undefined) void this.newest()
  }

  private async newest(): Promise<void> {
    if (this.busy) return this.wait(500)
    const first = this.state.readAt === null
    await this.run(async (signal) => {
      const limit = first ? PAGE : NEWEST
      const page = await this.read({ ...this.query, limit }, signal)
      this.merge(page, first && page.length < limit)
    })
    this.wait(
      this.failures > 0 ? Math.min(LONGEST, this.every * 2 ** Math.min(this.failures, 5)) : this.every,
    )
  }

  private merge(page: Entry[], end: boolean) {
    const { entries, fresh, readAt } = this.state
    if (readAt === null) {
      this.set({ entries: page, end })
      return
    }
    const known = fresh[0]?.id ?? entries[0]?.id ?? -1
    const added = page.filter((entry) => entry.id > known)
    if (added.length === 0) return
    // All are new: between them and the known ones others may be missing.
    const more = known !== -1 && added.length === page.length
    if (more) this.set({ fresh: page, freshMore: true })
    else this.set({ fresh: [...added, ...fresh].slice(0, this.most) })
    if (this.follows && !this.state.trimmed) this.take()
  }

  private cut(entries: Entry[], side: 'oldest' | 'newest', rest: Partial<LogState>): Partial<LogState> {
    const over = entries.length - this.most
    if (over <= 0) return { ...rest, entries }
    if (side === 'oldest') return { ...rest, entries: entries.slice(0, this.most), end: false }
    return { ...rest, entries: entries.slice(over), trimmed: true, dropped: this.state.dropped + over }
  }

  private async run(work: (signal: AbortSignal) => Promise<void>) {
    const { signal } = this.abort
    this.busy = true
    this.set({ loading: true })
    try {
      await work(signal)
      this.failures = 0
      if (!signal.aborted) this.set({ error: null, readAt: Date.now() })
    } catch (error) {
      if (signal.aborted) return
      this.failures += 1
      this.set({ error: error as Error })
    } finally {
      if (!signal.aborted) {
        this.busy = false
        this.set({ loading: false })
      }
    }
  }

  private wait(pause: number) {
    window.clearTimeout(this.timer)
    if (this.listeners.size === 0 || this.before !== undefined) return
    this.timer = window.setTimeout(() => {
      if (document.hidden) this.wait(this.every)
      else void this.newest()
    }, pause)
  }

  private set(change: Partial<LogState>) {
    this.state = { ...this.state, ...change }
    for (const listener of this.listeners) listener()
  }
}
