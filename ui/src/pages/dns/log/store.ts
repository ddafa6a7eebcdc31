// The entries of the query log that are in memory: the newest are read again and again, older ones page by page. What a
// reader looks at does not move: new entries wait until they are taken.

import type { Entry, LogQuery } from './filters'

export interface Page {
  /** Newest first. */
  entries: Entry[]
  /** The search ended early: how far it came, and where it goes on. */
  more: { searchedTo: string; before: string } | null
  /** Time of the answer by the clock of the gateway, in milliseconds since 1970. */
  at: number
}

/** Reads a page, newest first. */
export type ReadPage = (
  query: LogQuery & { before?: string; limit: number },
  signal: AbortSignal,
) => Promise<Page>

export interface LogState {
  /** Newest first. */
  entries: readonly Entry[]
  /** Newer ones that are not shown. */
  fresh: readonly Entry[]
  /** There are more new ones than were read: taking them begins a new list. */
  freshMore: boolean
  /** Nothing older is in the log, or in the range. */
  end: boolean
  /** Time to which the last search came, if it ended before it found a whole page. */
  searchedTo: string | null
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
/** A look at the newest begins this much before the last one: records can be written out of order. In milliseconds. */
const OVERLAP = 10_000
/** Searches that one look at the newest makes at most. */
const SEARCHES = 20

const EMPTY: LogState = {
  entries: [],
  fresh: [],
  freshMore: false,
  end: false,
  searchedTo: null,
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
  /** Where the next page begins, if the last search ended early. */
  private next: string | null = null
  /** Time of the last look at the newest, by the clock of the gateway. */
  private lookedAt = 0

  /** A query with an end is read once; nothing new can appear in it. */
  constructor(
    private readonly query: LogQuery,
    private readonly read: ReadPage,
    private readonly most = MOST,
  ) {}

  private get closed() {
    return this.query.until !== undefined
  }

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
      this.next = null
      this.set({
        entries: fresh,
        fresh: [],
        freshMore: false,
        trimmed: false,
        end: false,
        searchedTo: null,
      })
      if (fresh.length === 0) void this.newest()
    } else this.set(this.cut([...fresh, ...entries], 'oldest', { fresh: [] }))
  }

  /** Reads the next page of older entries. */
  async older(): Promise<void> {
    const { entries, end } = this.state
    if (this.busy || end) return
    await this.run(async (signal) => {
      const last = entries[entries.length - 1]
      const before = this.next ?? (last ? String(last.id) : undefined)
      const page = await this.read({ ...this.query, ...(before ? { before } : {}), limit: PAGE }, signal)
      this.set(this.cut([...this.state.entries, ...page.entries], 'newest', this.ended(page, PAGE)))
    })
  }

  /** Reads again after an error. */
  retry() {
    if (this.state.readAt === null || this.state.entries.length === 0) void this.newest()
    else void this.older()
  }

  private start() {
    this.abort = new AbortController()
    document.addEventListener('visibilitychange', this.seen)
    if (this.state.readAt === null || !this.closed) void this.newest()
  }

  private stop() {
    this.abort.abort()
    this.busy = false
    window.clearTimeout(this.timer)
    document.removeEventListener('visibilitychange', this.seen)
  }

  private seen = () => {
    if (!document.hidden && !this.closed) void this.newest()
  }

  private async newest(): Promise<void> {
    if (this.busy) return this.wait(500)
    const first = this.state.readAt === null
    await this.run(async (signal) => {
      if (first) {
        const page = await this.read({ ...this.query, limit: PAGE }, signal)
        this.lookedAt = page.at
        this.set({ entries: page.entries, ...this.ended(page, PAGE) })
      } else this.merge(await this.added(signal))
    })
    this.wait(
      this.failures > 0 ? Math.min(LONGEST, this.every * 2 ** Math.min(this.failures, 5)) : this.every,
    )
  }

  /** Reads what came since the last look. A filter that nothing matches does not search the whole log each time. */
  private async added(signal: AbortSignal): Promise<Entry[]> {
    const from = this.lookedAt - OVERLAP
    const { since } = this.query
    const query =
      since !== undefined && Date.parse(since) > from
        ? this.query
        : { ...this.query, since: new Date(from).toISOString() }
    const entries: Entry[] = []
    let before: string | undefined
    for (let search = 0; search < SEARCHES && entries.length < NEWEST; search += 1) {
      const page = await this.read({ ...query, ...(before ? { before } : {}), limit: NEWEST }, signal)
      if (search === 0) this.lookedAt = page.at
      entries.push(...page.entries)
      if (page.more === null) break
      before = page.more.before
    }
    return entries
  }

  private merge(page: Entry[]) {
    const { entries, fresh } = this.state
    const known = fresh[0]?.id ?? entries[0]?.id ?? -1
    const added = page.filter((entry) => entry.id > known)
    if (added.length === 0) return
    // All are new: between them and the known ones others may be missing.
    const more = known !== -1 && added.length >= NEWEST
    if (more) this.set({ fresh: page, freshMore: true })
    else this.set({ fresh: [...added, ...fresh].slice(0, this.most) })
    if (this.follows && !this.state.trimmed) this.take()
  }

  private ended(page: Page, limit: number): Pick<LogState, 'end' | 'searchedTo'> {
    this.next = page.more?.before ?? null
    return {
      end: page.more === null && page.entries.length < limit,
      searchedTo: page.more?.searchedTo ?? null,
    }
  }

  private cut(entries: Entry[], side: 'oldest' | 'newest', rest: Partial<LogState>): Partial<LogState> {
    const over = entries.length - this.most
    if (over <= 0) return { ...rest, entries }
    if (side === 'newest')
      return { ...rest, entries: entries.slice(over), trimmed: true, dropped: this.state.dropped + over }
    // Older ones are read again from the last that stays.
    this.next = null
    return { ...rest, entries: entries.slice(0, this.most), end: false, searchedTo: null }
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
    // A closed range is read until the first answer; afterwards only its older pages.
    if (this.listeners.size === 0 || (this.closed && this.state.readAt !== null)) return
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
