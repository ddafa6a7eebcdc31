import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { EventHub, SIGN_OF_LIFE, type Tab, type ToTab } from './event-hub'

class Stream {
  static all: Stream[] = []
  readonly CLOSED = 2
  readyState = 0
  onopen: (() => void) | null = null
  onerror: (() => void) | null = null
  private handlers = new Map<string, (event: { data: string }) => void>()
  constructor() {
    Stream.all.push(this)
  }
  addEventListener(name: string, handler: (event: { data: string }) => void) {
    this.handlers.set(name, handler)
  }
  close() {
    this.readyState = this.CLOSED
  }
  opens() {
    this.readyState = 1
    this.onopen?.()
  }
  sends(name: string, data: string) {
    this.handlers.get(name)?.({ data })
  }
}

const openStreams = () => Stream.all.filter((stream) => stream.readyState !== stream.CLOSED)
const latest = () => Stream.all.at(-1) ?? new Stream()

function newTab(): Tab & { got: ToTab[] } {
  const got: ToTab[] = []
  return { got, send: (message) => got.push(message) }
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

it('opens one stream for ten tabs, and sends its events to each', () => {
  const hub = new EventHub()
  const tabs = Array.from({ length: 10 }, newTab)
  for (const tab of tabs) hub.receive(tab, 'visible')
  latest().opens()
  latest().sends('revision', '{"revision":2}')
  expect(Stream.all).toHaveLength(1)
  for (const tab of tabs)
    expect(tab.got.at(-1)).toEqual({ type: 'event', name: 'revision', data: '{"revision":2}' })
})

it('closes the stream while no tab is visible', () => {
  const hub = new EventHub()
  const [one, other] = [newTab(), newTab()]
  hub.receive(one, 'visible')
  hub.receive(other, 'visible')
  latest().opens()
  hub.receive(one, 'hidden')
  vi.advanceTimersByTime(60_000 - SIGN_OF_LIFE)
  expect(openStreams()).toHaveLength(1)
  hub.receive(other, 'hidden')
  vi.advanceTimersByTime(10_000)
  expect(openStreams()).toHaveLength(0)
  hub.receive(one, 'visible')
  expect(openStreams()).toHaveLength(1)
})

it('stays open when another tab is chosen', () => {
  const hub = new EventHub()
  const [one, other] = [newTab(), newTab()]
  hub.receive(one, 'visible')
  latest().opens()
  hub.receive(one, 'hidden')
  hub.receive(other, 'visible')
  vi.advanceTimersByTime(30_000)
  expect(Stream.all).toHaveLength(1)
  expect(openStreams()).toHaveLength(1)
})

it('forgets a tab that ended without a word', () => {
  const hub = new EventHub()
  hub.receive(newTab(), 'visible')
  latest().opens()
  vi.advanceTimersByTime(300_000)
  expect(openStreams()).toHaveLength(0)
})

it('keeps a tab that gives signs of life', () => {
  const hub = new EventHub()
  const tab = newTab()
  hub.receive(tab, 'visible')
  latest().opens()
  for (let count = 0; count < 30; count += 1) {
    vi.advanceTimersByTime(SIGN_OF_LIFE)
    hub.receive(tab, 'alive')
  }
  expect(Stream.all).toHaveLength(1)
  expect(openStreams()).toHaveLength(1)
})

it('sends a later tab the alerts that came before it', () => {
  const hub = new EventHub()
  hub.receive(newTab(), 'visible')
  latest().opens()
  const alert = { kind: 'tunnel_down', subject: 'wg-a', message: 'down', since: '2026-01-01T10:00:00Z' }
  latest().sends('alert', JSON.stringify({ ...alert, active: true }))
  vi.advanceTimersByTime(1000)
  const late = newTab()
  hub.receive(late, 'visible')
  expect(late.got).toEqual([{ type: 'state', open: true, alerts: { known: true, list: [alert] } }])
})
