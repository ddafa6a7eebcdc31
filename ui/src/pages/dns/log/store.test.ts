import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Schemas } from '@/api/client'
import { LogStore, PAGE, type Page, type ReadPage } from './store'

type Entry = Schemas['Entry']

const entries = (from: number, to: number) =>
  Array.from({ length: from - to + 1 }, (_, index) => ({ id: from - index }) as Entry)

const page = (found: Entry[], more: Page['more'] = null): Page => ({ entries: found, more, at: Date.now() })

/** A log whose newest entry can be moved on. */
function logTo(newest: { id: number }): ReadPage {
  return ({ before, limit }) => {
    const first = before === undefined ? newest.id : Number(before) - 1
    return Promise.resolve(page(entries(first, Math.max(1, first - limit + 1))))
  }
}

describe('LogStore', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  it('shows new entries at once while it follows', async () => {
    const newest = { id: 5 }
    const store = new LogStore({}, logTo(newest))
    const stop = store.subscribe(() => undefined)
    await vi.advanceTimersByTimeAsync(10)
    newest.id = 7
    await vi.advanceTimersByTimeAsync(2100)
    expect(store.snapshot().entries.map(({ id }) => id)).toEqual([7, 6, 5, 4, 3, 2, 1])
    stop()
  })

  it('keeps new entries back while the list is frozen, until they are taken', async () => {
    const newest = { id: 5 }
    const store = new LogStore({}, logTo(newest))
    store.follow(false, 2000)
    const stop = store.subscribe(() => undefined)
    await vi.advanceTimersByTimeAsync(10)
    newest.id = 7
    await vi.advanceTimersByTimeAsync(2100)
    expect(store.snapshot().entries).toHaveLength(5)
    expect(store.snapshot().fresh.map(({ id }) => id)).toEqual([7, 6])
    store.take()
    expect(store.snapshot().entries).toHaveLength(7)
    expect(store.snapshot().fresh).toHaveLength(0)
    stop()
  })

  it('begins a new list if more came than one look reads', async () => {
    const newest = { id: 5 }
    const store = new LogStore({}, logTo(newest))
    store.follow(false, 2000)
    const stop = store.subscribe(() => undefined)
    await vi.advanceTimersByTimeAsync(10)
    newest.id = 2000
    await vi.advanceTimersByTimeAsync(2100)
    expect(store.snapshot().freshMore).toBe(true)
    store.take()
    const ids = store.snapshot().entries.map(({ id }) => id)
    expect(ids[0]).toBe(2000)
    expect(ids.at(-1)).toBeGreaterThan(5)
    stop()
  })

  it('reads older pages without a gap, and lets the newest go for them', async () => {
    const store = new LogStore({}, logTo({ id: 5000 }), 2 * PAGE)
    const stop = store.subscribe(() => undefined)
    await vi.advanceTimersByTimeAsync(10)
    await store.older()
    await store.older()
    const state = store.snapshot()
    expect(state.entries).toHaveLength(2 * PAGE)
    expect(state.entries[0]?.id).toBe(5000 - PAGE)
    expect(state.trimmed).toBe(true)
    expect(state.end).toBe(false)
    stop()
  })

  it('keeps what it has when a read fails', async () => {
    const newest = { id: 5 }
    const good = logTo(newest)
    let broken = false
    const store = new LogStore({}, (...input) =>
      broken ? Promise.reject(new Error('gone')) : good(...input),
    )
    const stop = store.subscribe(() => undefined)
    await vi.advanceTimersByTimeAsync(10)
    broken = true
    await vi.advanceTimersByTimeAsync(2100)
    expect(store.snapshot().error?.message).toBe('gone')
    expect(store.snapshot().entries).toHaveLength(5)
    stop()
  })

  it('goes on where a search ended early', async () => {
    const asked: (string | undefined)[] = []
    const store = new LogStore({ domain: 'rare' }, ({ before }) => {
      asked.push(before)
      return Promise.resolve(
        before === undefined
          ? page(entries(9, 9), { searchedTo: '2026-11-25T03:00:00Z', before: '4' })
          : page(entries(2, 2)),
      )
    })
    const stop = store.subscribe(() => undefined)
    await vi.advanceTimersByTimeAsync(10)
    expect(store.snapshot()).toMatchObject({ end: false, searchedTo: '2026-11-25T03:00:00Z' })
    await store.older()
    expect(asked).toEqual([undefined, '4'])
    expect(store.snapshot()).toMatchObject({ end: true, searchedTo: null })
    expect(store.snapshot().entries.map(({ id }) => id)).toEqual([9, 2])
    stop()
  })

  it('looks for new entries only in what came since the last look', async () => {
    const asked: (string | undefined)[] = []
    const store = new LogStore({ domain: 'rare' }, ({ since }) => {
      asked.push(since)
      return Promise.resolve(page([]))
    })
    const stop = store.subscribe(() => undefined)
    await vi.advanceTimersByTimeAsync(2100)
    expect(asked).toHaveLength(2)
    expect(asked[0]).toBeUndefined()
    expect(Date.parse(asked[1] ?? '')).toBeGreaterThan(Date.now() - 20_000)
    stop()
  })

  it('reads a range with an end once', async () => {
    let reads = 0
    const store = new LogStore({ until: '2026-11-25T03:00:00Z' }, () => {
      reads += 1
      return Promise.resolve(page(entries(9, 8)))
    })
    const stop = store.subscribe(() => undefined)
    await vi.advanceTimersByTimeAsync(60_000)
    expect(reads).toBe(1)
    expect(store.snapshot().end).toBe(true)
    stop()
  })
})
