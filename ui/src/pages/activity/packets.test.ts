import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import type { ReadLines } from '@/api/line-stream'
import { endOf, matching, PacketStore, type Packet } from './packets'

const packet = (no: number, more: Partial<Packet> = {}): Packet => ({
  no,
  time: '2026-11-30T10:00:00Z',
  interface: 'eth1',
  direction: 'in',
  src: '192.168.10.5',
  dst: '198.51.100.7',
  src_port: 40_000,
  dst_port: 443,
  proto: 'TLS',
  vlan: null,
  length: 90,
  info: 'ClientHello www.example',
  device: 'laptop',
  decision: { decision: 'tunnel', reason: 'policy', policy: 'vpn-only', egress: 'vpn:wg-a' },
  leg: null,
  ...more,
})
const session = (state: string) => ({ session: { state } })

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** A stream whose lines and end the test chooses. */
function stream() {
  const opened: { signal: AbortSignal; take: (lines: unknown[]) => void; end: (error?: Error) => void }[] = []
  const read: ReadLines = (signal, take) =>
    new Promise((resolve, reject) => {
      opened.push({ signal, take, end: (error) => (error ? reject(error) : resolve()) })
    })
  const latest = () => {
    const found = opened.at(-1)
    if (!found) throw new Error('no stream is open')
    return found
  }
  return { opened, read, latest }
}

it('draws packets newest first, and is complete when the capture has ended', async () => {
  const { read, latest } = stream()
  const store = new PacketStore(read)
  const end = store.subscribe(() => undefined)
  latest().take([packet(1), packet(2)])
  expect(store.snapshot().packets).toEqual([])
  vi.advanceTimersByTime(500)
  expect(store.snapshot().packets.map(({ no }) => no)).toEqual([2, 1])
  expect(store.snapshot().complete).toBe(false)
  latest().take([packet(3), session('stopped')])
  latest().end()
  await vi.advanceTimersByTimeAsync(0)
  expect(store.snapshot()).toMatchObject({ complete: true, error: null, last: 3 })
  end()
})

it('reads again after a break, and passes over the packets that are known', async () => {
  const { opened, read, latest } = stream()
  const store = new PacketStore(read)
  const end = store.subscribe(() => undefined)
  latest().take([packet(1), packet(2), session('running')])
  latest().end()
  await vi.advanceTimersByTimeAsync(0)
  expect(store.snapshot().error).not.toBeNull()
  await vi.advanceTimersByTimeAsync(2000)
  expect(opened).toHaveLength(2)
  latest().take([packet(1), packet(2), packet(3)])
  vi.advanceTimersByTime(500)
  expect(store.snapshot().packets.map(({ no }) => no)).toEqual([3, 2, 1])
  expect(store.snapshot().error).toBeNull()
  end()
  expect(latest().signal.aborted).toBe(true)
})

it('keeps the newest packets only', () => {
  const { read, latest } = stream()
  const store = new PacketStore(read, 2)
  const end = store.subscribe(() => undefined)
  latest().take([packet(1), packet(2), packet(3)])
  vi.advanceTimersByTime(500)
  expect(store.snapshot().packets.map(({ no }) => no)).toEqual([3, 2])
  end()
})

it('narrows packets by words, decision and protocol', () => {
  const all = [packet(1), packet(2, { proto: 'DNS', decision: null, info: 'query www.example A' })]
  const numbers = (filter: Parameters<typeof matching>[1]) => matching(all, filter).map(({ no }) => no)
  expect(numbers({})).toEqual([1, 2])
  expect(numbers({ words: 'WWW.example 198.51.100.7:443' })).toEqual([1, 2])
  expect(numbers({ words: 'vpn-only' })).toEqual([1])
  expect(numbers({ proto: 'DNS' })).toEqual([2])
  expect(numbers({ decision: 'tunnel' })).toEqual([1])
  expect(numbers({ decision: 'none' })).toEqual([2])
})

it('writes the ends of packets', () => {
  expect(endOf('192.0.2.7', 443)).toBe('192.0.2.7:443')
  expect(endOf('2001:db8::7', 443)).toBe('[2001:db8::7]:443')
  expect(endOf('02:00:00:00:00:01', null)).toBe('02:00:00:00:00:01')
})
