import { QueryClient } from '@tanstack/react-query'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { live } from './live'

/** A stream of a browser, which connects again by itself unless it was refused. */
class Stream {
  static all: Stream[] = []
  readonly CLOSED = 2
  readyState = 0
  onopen: (() => void) | null = null
  onerror: (() => void) | null = null
  constructor() {
    Stream.all.push(this)
  }
  addEventListener() {}
  close() {
    this.readyState = this.CLOSED
  }
  opens() {
    this.readyState = 1
    this.onopen?.()
  }
  breaks() {
    this.readyState = 0
    this.onerror?.()
  }
  isRefused() {
    this.readyState = this.CLOSED
    this.onerror?.()
  }
}

beforeEach(() => {
  vi.useFakeTimers()
  vi.stubGlobal('EventSource', Stream)
  Stream.all = []
})

afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

it('opens the stream again after a refusal, with longer pauses', () => {
  const end = live.follow(new QueryClient())
  const latest = () => Stream.all.at(-1) ?? new Stream()
  latest().opens()
  expect(live.open).toBe(true)
  latest().breaks()
  vi.advanceTimersByTime(60_000)
  expect(Stream.all).toHaveLength(1)
  latest().isRefused()
  vi.advanceTimersByTime(2_000)
  expect(Stream.all).toHaveLength(2)
  latest().isRefused()
  vi.advanceTimersByTime(2_000)
  expect(Stream.all).toHaveLength(2)
  vi.advanceTimersByTime(2_000)
  expect(Stream.all).toHaveLength(3)
  latest().opens()
  expect(live.open).toBe(true)
  latest().isRefused()
  end()
  vi.advanceTimersByTime(60_000)
  expect(Stream.all).toHaveLength(3)
})
