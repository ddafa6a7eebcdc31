// Flows: the filters of the page, and the list together with what the stream said since it was read.

import type { Schemas } from '@/api/client'
import { LineStream, type ReadLines } from '@/api/line-stream'
import type { QueryOf } from '@/api/query'
import type { PacketQuery } from '@/components/why/query'
import type { Search } from '@/session/search-params'

export type Flow = Schemas['FlowEntry']
export type FlowPath = Schemas['FlowPathEntry']

/** Flows of a page. */
export const PAGE = 100

export const FILTERS = [
  'device',
  'client',
  'domain',
  'destination',
  'country',
  'port',
  'protocol',
  'policy',
  'egress',
  'verdict',
  'state',
  'since',
  'until',
] as const

/** The filters of an address. What the API cannot read it answers with an error, which the page shows. */
export function queryOf(search: Search): QueryOf<'/flows'> {
  const set = FILTERS.filter((name) => search[name]).map((name) => [name, search[name]])
  return Object.fromEntries(set) as QueryOf<'/flows'>
}

/** What is typed is an address, or a part of a name. */
export function typedFilter(typed: string | undefined): Search {
  const isAddress =
    typed !== undefined && (/^\d+(\.\d+){3}$/.test(typed) || /^[\da-f:.]*:[\da-f:.]*$/i.test(typed))
  return { destination: isAddress ? typed : undefined, domain: isAddress ? undefined : typed }
}

/** Each part of a long flow has a row of its own. */
export const keyOf = ({ flow_id, part }: Flow) => `${flow_id}.${part}`

/** Name by which the client asked for the destination, if one is known. */
export const nameOf = ({ names, server_name }: Flow): string | null => names[0] ?? server_name

/** The packet of a flow as of a time: the same question gets the answer of the plan of that time. */
export function packetAt(flow: Flow, { at }: Pick<FlowPath, 'at'>): PacketQuery | null {
  const { client, destination, destination_port: port, protocol } = flow
  if (!client?.device_id) return null
  const known = protocol === 'tcp' || protocol === 'udp' ? protocol : 'icmp'
  if (known === 'icmp' && !protocol.startsWith('icmp')) return null
  return {
    device_id: client.device_id,
    destination,
    at,
    protocol: known,
    ...(known === 'icmp' ? {} : { port }),
  }
}

/** What the stream said of a flow, and when it did. */
export interface FlowNews {
  flow: Flow
  at: number
}

/** A list can lack what the stream said this long before its answer arrived, in milliseconds. */
const OVERLAP = 20_000

/** The list with the news since: flows that go on, then those that have ended, the newest first. */
export function merged(list: readonly Flow[], news: readonly FlowNews[], readAt: number): Flow[] {
  const flows = new Map(list.map((flow) => [keyOf(flow), flow]))
  for (const { flow, at } of news) {
    if (at < readAt - OVERLAP) continue
    const known = flows.get(keyOf(flow))
    const isOld = known && (!known.active || (flow.active && known.path_changes >= flow.path_changes))
    if (!isOld) flows.set(keyOf(flow), flow)
  }
  const end = ({ active, ended_at, last_at, started_at }: Flow) =>
    active ? started_at : (ended_at ?? last_at ?? started_at)
  return [...flows.values()].sort(
    (one, other) =>
      Number(other.active) - Number(one.active) || Date.parse(end(other)) - Date.parse(end(one)),
  )
}

export interface NewsState {
  /** Oldest first. */
  news: readonly FlowNews[]
  error: Error | null
}

/** News that are kept. */
const MOST = 1000
/** Pause between two drawings, in milliseconds. */
const PAUSE = 400

type Line = { event: 'heartbeat' | 'lost' } | { event: 'begun' | 'changed' | 'ended'; flow: Flow }

/** Follows the changes of flows. */
export class FlowStream {
  private state: NewsState = { news: [], error: null }
  private arrived: FlowNews[] = []
  private drawing: number | undefined
  private listener: (() => void) | null = null
  private readonly stream: LineStream

  constructor(read: ReadLines) {
    this.stream = new LineStream(read, {
      take: (lines) => {
        const at = Date.now()
        for (const line of lines as Line[]) if ('flow' in line) this.arrived.push({ flow: line.flow, at })
        if (this.arrived.length > 0 || this.state.error)
          this.drawing ??= window.setTimeout(() => this.draw(null), PAUSE)
        return false
      },
      ended: () => undefined,
      failed: (error) => this.draw(error),
    })
  }

  subscribe = (listener: () => void) => {
    this.listener = listener
    this.stream.start()
    return () => {
      this.listener = null
      this.stream.stop()
      window.clearTimeout(this.drawing)
      this.drawing = undefined
    }
  }

  snapshot = () => this.state

  private draw(error: Error | null) {
    window.clearTimeout(this.drawing)
    this.drawing = undefined
    this.state = { news: [...this.state.news, ...this.arrived.splice(0)].slice(-MOST), error }
    this.listener?.()
  }
}
