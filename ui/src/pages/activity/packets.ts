// The packets of a capture that are in memory. They come by a stream that begins with the first one, so after a break those
// that are known are passed over.

import type { Schemas } from '@/api/client'
import { LineStream, type ReadLines } from '@/api/line-stream'

export type Packet = Schemas['CapturedPacket']
type Session = Schemas['CaptureSession']

export interface PacketState {
  /** Newest first. */
  packets: readonly Packet[]
  /** Number of the newest one that was read. */
  last: number
  /** The capture has ended, and all of its packets were read. */
  complete: boolean
  error: Error | null
}

/** Packets that are kept in memory, the newest. */
export const MOST = 10_000
/** Pause between two drawings, in milliseconds. */
const PAUSE = 400

export class PacketStore {
  private state: PacketState = { packets: [], last: 0, complete: false, error: null }
  private listeners = new Set<() => void>()
  private readonly stream: LineStream
  /** Oldest first, not drawn yet. */
  private arrived: Packet[] = []
  private last = 0
  private drawing: number | undefined

  constructor(
    read: ReadLines,
    private readonly most = MOST,
  ) {
    this.stream = new LineStream(read, {
      take: (lines) => this.take(lines),
      ended: () => this.draw({ complete: true, error: null }),
      failed: (error) => this.draw({ error }),
    })
  }

  subscribe = (listener: () => void) => {
    this.listeners.add(listener)
    if (this.listeners.size === 1) this.stream.start()
    return () => {
      this.listeners.delete(listener)
      if (this.listeners.size > 0) return
      this.stream.stop()
      window.clearTimeout(this.drawing)
      this.drawing = undefined
    }
  }

  snapshot = () => this.state

  /** Returns whether the capture has ended. */
  private take(lines: unknown[]): boolean {
    let ended = false
    for (const line of lines as (Packet | { session: Session })[]) {
      if ('session' in line) ended = line.session.state !== 'running'
      else if (line.no > this.last) {
        this.last = line.no
        this.arrived.push(line)
      }
    }
    this.drawing ??= window.setTimeout(() => this.draw({ error: null }), PAUSE)
    return ended
  }

  private draw(change: Partial<PacketState>) {
    window.clearTimeout(this.drawing)
    this.drawing = undefined
    const added = this.arrived.splice(0).reverse()
    const packets =
      added.length > 0 ? [...added, ...this.state.packets].slice(0, this.most) : this.state.packets
    this.state = { ...this.state, ...change, packets, last: this.last }
    for (const listener of this.listeners) listener()
  }
}

/** What narrows the list. */
export interface PacketFilter {
  /** Words that are all in what is said of a packet. */
  words?: string
  decision?: string
  proto?: string
}

/** The packets that a filter lets through. */
export function matching(packets: readonly Packet[], { words, decision, proto }: PacketFilter): Packet[] {
  const wanted = (words ?? '').toLowerCase().split(/\s+/).filter(Boolean)
  return packets.filter((packet) => {
    if (proto && packet.proto !== proto) return false
    if (decision && (packet.decision?.decision ?? 'none') !== decision) return false
    if (wanted.length === 0) return true
    const said = saidOf(packet)
    return wanted.every((word) => said.includes(word))
  })
}

function saidOf({
  src,
  src_port,
  dst,
  dst_port,
  proto,
  info,
  device,
  leg,
  decision,
  interface: name,
}: Packet) {
  const { policy, egress, reason } = decision ?? {}
  const parts = [
    endOf(src, src_port),
    endOf(dst, dst_port),
    proto,
    info,
    device,
    leg,
    name,
    policy,
    egress,
    reason,
  ]
  return parts.filter(Boolean).join(' ').toLowerCase()
}

/** An end of a packet: `192.0.2.7:443`, `[2001:db8::7]:443`. */
export function endOf(address: string, port: number | null): string {
  if (port === null) return address
  return address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`
}
