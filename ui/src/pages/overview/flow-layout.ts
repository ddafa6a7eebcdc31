// The layout of the graph of paths: four columns, rows in the order of the policies, cubic edges. It is a pure function.

import type { Edge, Flow, FlowNode, PolicyRow } from './flow-model'

export const WIDTH = 1168
export const NODE = 39
const STEP = 54
const TOP = 30.5

/** Left edge and width of each column: devices, policies, hops, uplinks. */
export const COLUMNS = {
  source: { x: 0.5, width: 199 },
  policy: { x: 318.5, width: 203 },
  hop: { x: 656.5, width: 183 },
  uplink: { x: 984.5, width: 183 },
} as const

export interface Placed {
  node: FlowNode
  x: number
  y: number
  width: number
  height: number
}

export interface Line {
  id: string
  edge: Edge
  path: string
  /** Width of the band by traffic; 0 without counters. */
  band: number
}

export interface Stop {
  id: string
  x: number
  y: number
}

export interface Layout {
  height: number
  nodes: Placed[]
  lines: Line[]
  stops: Stop[]
  /** Labels on edges that pass the column of hops. */
  labels: { id: string; x: number; y: number }[]
}

/** Width of a band: 3 for a trickle, 20 for the widest. */
export function bandWidth(rate: number | null, most: number): number {
  if (rate === null || rate <= 0 || most <= 0) return 0
  return 3 + 17 * Math.sqrt(rate / most)
}

export function curve(x1: number, y1: number, x2: number, y2: number): string {
  const middle = (x1 + x2) / 2
  return `M${x1} ${r(y1)}C${middle} ${r(y1)} ${middle} ${r(y2)} ${x2} ${r(y2)}`
}

function r(value: number): number {
  return Math.round(value * 10) / 10
}

const right = (column: { x: number; width: number }) => Math.round(column.x + column.width)
const left = (column: { x: number }) => Math.floor(column.x)

export function layOut(flow: Flow): Layout {
  const places = placesOf(flow)
  const nodes = [
    ...flow.rows.flatMap((row, index) => {
      const y = places.rowY(index)
      return [place(row.source, COLUMNS.source, y), place(row.policy, COLUMNS.policy, y)]
    }),
    ...flow.hops.map((hop) => place(hop, COLUMNS.hop, places.hopY(hop.id))),
    ...flow.uplinks.map((uplink) => place(uplink, COLUMNS.uplink, places.uplinkY(uplink.id))),
  ]
  const lines = [
    ...flow.rows.flatMap((row, index) => linesOfRow(row, places.rowY(index) + NODE / 2, places)),
    ...flow.hops.flatMap((hop) => lineOfHop(hop, places)),
  ]
  // Lines in use are drawn over unusable ones.
  lines.sort((one, other) => Number(other.edge === 'none') - Number(one.edge === 'none'))
  const middles = flow.rows.map((row, index) => ({
    row,
    id: row.policy.id,
    y: places.rowY(index) + NODE / 2,
  }))
  return {
    height: places.bottom + NODE + 5,
    nodes,
    lines,
    stops: middles
      .filter(({ row }) => row.edge === 'blocked')
      .map(({ id, y }) => ({ id, x: right(COLUMNS.policy) + 35, y: y - 11 })),
    labels: middles
      .filter(({ row }) => row.direct !== null && places.hasUplink(row.direct))
      .map(({ id, y }) => ({ id, x: 748, y })),
  }
}

/** Where the nodes are, and where edges arrive at them. */
interface Places {
  rowY: (index: number) => number
  hopY: (id: string) => number
  uplinkY: (id: string) => number
  hasUplink: (id: string) => boolean
  /** Middle of a node, moved to where the edge from another one arrives. */
  arrival: (y: number, at: string, from: string) => number
  bottom: number
  /** The highest rate. */
  most: number
}

function placesOf(flow: Flow): Places {
  const rowY = (index: number) => TOP + index * STEP
  // Hops stand near the middle of the policies that use them, in that order, and do not overlap.
  const hops = spread(
    flow.hops.map((hop) => {
      const users = flow.rows.flatMap((row, index) =>
        row.hops.some((each) => each.id === hop.id) ? [rowY(index)] : [],
      )
      return { id: hop.id, y: mean(users) ?? TOP }
    }),
    NODE + 15,
  )
  const hopY = (id: string) => hops.get(id) ?? TOP
  // Uplinks stand near the middle of what leaves by them; those without traffic below.
  const uplinks = spread(
    flow.uplinks.map(({ id }) => {
      const users = [
        ...flow.hops.flatMap((hop) => (hop.uplink === id ? [hopY(hop.id)] : [])),
        ...flow.rows.flatMap((row, index) => (row.direct === id ? [rowY(index)] : [])),
      ]
      return { id, y: mean(users) ?? Number.POSITIVE_INFINITY }
    }),
    NODE + 15,
  )
  const ports = portsOf(flow, rowY, hopY)
  const rates = [...flow.rows, ...flow.hops].map(({ rate }) => rate ?? 0)
  return {
    rowY,
    hopY,
    uplinkY: (id) => uplinks.get(id) ?? TOP,
    hasUplink: (id) => uplinks.has(id),
    arrival: (y, at, from) => y + NODE / 2 + portOffset(ports.get(at) ?? [], from),
    bottom: Math.max(rowY(Math.max(0, flow.rows.length - 1)), TOP, ...hops.values(), ...uplinks.values()),
    most: Math.max(...rates, 0),
  }
}

function mean(values: number[]): number | undefined {
  return values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : undefined
}

type Ports = Map<string, { from: string; y: number }[]>

/** Edges that arrive at one node lie beside each other, in the order of where they come from. */
function portsOf(flow: Flow, rowY: Places['rowY'], hopY: Places['hopY']): Ports {
  const ports: Ports = new Map()
  const arrives = (at: string, from: string, y: number) =>
    ports.set(at, [...(ports.get(at) ?? []), { from, y }])
  flow.rows.forEach((row, index) => {
    for (const hop of row.hops) arrives(hop.id, row.policy.id, rowY(index))
    if (row.direct !== null) arrives(row.direct, row.policy.id, rowY(index))
  })
  for (const hop of flow.hops) if (hop.uplink !== null) arrives(hop.uplink, hop.id, hopY(hop.id))
  return ports
}

/** The lines of a policy: from its devices, and to its hops, to a stop or past the hops. */
function linesOfRow(row: PolicyRow, middle: number, places: Places): Line[] {
  const { id } = row.policy
  const blocked = row.edge === 'blocked'
  const from = right(COLUMNS.policy)
  const band = bandWidth(row.rate, places.most)
  const lines: Line[] = [
    {
      id: `a.${id}`,
      edge: row.edge,
      band: blocked ? 0 : band,
      path: `M${right(COLUMNS.source)} ${middle}H${left(COLUMNS.policy)}`,
    },
  ]
  if (blocked)
    lines.push({ id: `b.${id}`, edge: 'blocked', band: 0, path: `M${from} ${middle}H${from + 34}` })
  const inUse = Math.max(1, row.hops.filter((hop) => hop.edge !== 'none').length)
  const share = bandWidth(row.rate === null ? null : row.rate / inUse, places.most)
  for (const hop of row.hops)
    lines.push({
      id: `b.${id}.${hop.id}`,
      edge: hop.edge,
      band: hop.edge === 'none' ? 0 : share,
      path: curve(
        blocked ? from + 58 : from,
        middle,
        left(COLUMNS.hop),
        places.arrival(places.hopY(hop.id), hop.id, id),
      ),
    })
  if (row.direct !== null && places.hasUplink(row.direct)) {
    const to = r(places.arrival(places.uplinkY(row.direct), row.direct, id))
    const turn = right(COLUMNS.hop) - 20
    const end = left(COLUMNS.uplink)
    const path = `M${from} ${middle}H${turn}C${turn + 80} ${middle} ${end - 70} ${to} ${end} ${to}`
    lines.push({ id: `d.${id}`, edge: 'direct', band, path })
  }
  return lines
}

/** The line from a hop to its uplink. */
function lineOfHop(hop: Flow['hops'][number], places: Places): Line[] {
  if (hop.uplink === null || !places.hasUplink(hop.uplink)) return []
  const to = places.arrival(places.uplinkY(hop.uplink), hop.uplink, hop.id)
  return [
    {
      id: `c.${hop.id}`,
      edge: hop.edge,
      band: hop.edge === 'none' ? 0 : bandWidth(hop.rate, places.most),
      path: curve(right(COLUMNS.hop), places.hopY(hop.id) + NODE / 2, left(COLUMNS.uplink), to),
    },
  ]
}

function place(node: FlowNode, column: { x: number; width: number }, y: number): Placed {
  return { node, x: column.x, y: r(y), width: column.width, height: NODE }
}

/** Distance of an arriving edge from the middle of its node. */
export function portOffset(arriving: readonly { from: string; y: number }[], from: string): number {
  const sorted = [...arriving].sort((one, other) => one.y - other.y)
  const index = sorted.findIndex((each) => each.from === from)
  const step = Math.min(8, 28 / Math.max(1, sorted.length - 1))
  return index < 0 ? 0 : (index - (sorted.length - 1) / 2) * step
}

/** Positions near those that are wished for, in their order and at least a step apart. */
export function spread(wishes: readonly { id: string; y: number }[], step: number): Map<string, number> {
  const sorted = [...wishes].sort((one, other) => (one.y === other.y ? 0 : one.y - other.y))
  const placed: { id: string; y: number }[] = []
  for (const { id, y } of sorted) {
    const last = placed[placed.length - 1]
    const lowest = last ? last.y + step : TOP
    placed.push({ id, y: Number.isFinite(y) ? Math.max(y, lowest) : last ? lowest : TOP })
  }
  return new Map(placed.map(({ id, y }) => [id, y]))
}
