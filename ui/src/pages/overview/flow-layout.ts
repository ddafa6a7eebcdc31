// The layout of the graph of paths: four columns, rows in the order of the policies, cubic edges. It is a pure function.

import type { Edge, Flow, FlowNode } from './flow-model'

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
  const lines: Line[] = []
  const stops: Stop[] = []
  const labels: Layout['labels'] = []
  const nodes: Placed[] = []
  const rowY = flow.rows.map((_, index) => TOP + index * STEP)
  const rates = flow.rows.map((row) => row.rate ?? 0)
  const hopRates = flow.hops.map((hop) => hop.rate ?? 0)
  const most = Math.max(...rates, ...hopRates, 0)

  // Hops stand near the middle of the policies that use them, in that order, and do not overlap.
  const wished = flow.hops.map((hop) => {
    const users = flow.rows.flatMap((row, index) =>
      row.hops.some((each) => each.id === hop.id) ? [rowY[index] ?? TOP] : [],
    )
    return { id: hop.id, y: users.length ? users.reduce((sum, y) => sum + y, 0) / users.length : TOP }
  })
  const hopY = spread(wished, NODE + 15)
  const rowsBottom = TOP + Math.max(0, flow.rows.length - 1) * STEP
  const hopsBottom = Math.max(...hopY.values(), TOP)

  // Uplinks stand near the middle of what leaves by them; those without traffic below.
  const uplinkWishes = flow.uplinks.map((uplink) => {
    const ys = [
      ...flow.hops.flatMap((hop) => (hop.uplink === uplink.id ? [hopY.get(hop.id) ?? TOP] : [])),
      ...flow.rows.flatMap((row, index) => (row.direct === uplink.id ? [rowY[index] ?? TOP] : [])),
    ]
    return {
      id: uplink.id,
      y: ys.length ? ys.reduce((sum, y) => sum + y, 0) / ys.length : Number.POSITIVE_INFINITY,
    }
  })
  const uplinkY = spread(uplinkWishes, NODE + 15)
  const bottom = Math.max(rowsBottom, hopsBottom, ...uplinkY.values())

  // Edges that arrive at one node lie beside each other, in the order of where they come from.
  const ports = new Map<string, { from: string; y: number }[]>()
  const arrives = (at: string, from: string, y: number) =>
    ports.set(at, [...(ports.get(at) ?? []), { from, y }])
  flow.rows.forEach((row, index) => {
    const y = rowY[index] ?? TOP
    for (const hop of row.hops) arrives(hop.id, row.policy.id, y)
    if (row.direct !== null) arrives(row.direct, row.policy.id, y)
  })
  for (const hop of flow.hops) if (hop.uplink !== null) arrives(hop.uplink, hop.id, hopY.get(hop.id) ?? TOP)
  const port = (at: string, from: string) => portOffset(ports.get(at) ?? [], from)

  flow.rows.forEach((row, index) => {
    const y = rowY[index] ?? TOP
    const middle = y + NODE / 2
    nodes.push(place(row.source, COLUMNS.source, y), place(row.policy, COLUMNS.policy, y))
    const band = bandWidth(row.rate, most)
    lines.push({
      id: `a.${row.policy.id}`,
      edge: row.edge,
      band: row.edge === 'blocked' ? 0 : band,
      path: `M${right(COLUMNS.source)} ${middle}H${left(COLUMNS.policy)}`,
    })
    const from = right(COLUMNS.policy)
    if (row.edge === 'blocked') {
      lines.push({
        id: `b.${row.policy.id}`,
        edge: 'blocked',
        band: 0,
        path: `M${from} ${middle}H${from + 34}`,
      })
      stops.push({ id: row.policy.id, x: from + 35, y: middle - 11 })
    }
    const inUse = row.hops.filter((hop) => hop.edge !== 'none').length
    for (const hop of row.hops) {
      const to = (hopY.get(hop.id) ?? TOP) + NODE / 2 + port(hop.id, row.policy.id)
      const start = row.edge === 'blocked' ? from + 58 : from
      lines.push({
        id: `b.${row.policy.id}.${hop.id}`,
        edge: hop.edge,
        band:
          hop.edge === 'none' ? 0 : bandWidth(row.rate === null ? null : row.rate / Math.max(1, inUse), most),
        path: curve(start, middle, left(COLUMNS.hop), to),
      })
    }
    if (row.direct !== null && uplinkY.has(row.direct)) {
      const to = (uplinkY.get(row.direct) ?? TOP) + NODE / 2 + port(row.direct, row.policy.id)
      const turn = right(COLUMNS.hop) - 20
      const end = left(COLUMNS.uplink)
      const path = `M${from} ${middle}H${turn}C${turn + 80} ${middle} ${end - 70} ${r(to)} ${end} ${r(to)}`
      lines.push({ id: `d.${row.policy.id}`, edge: 'direct', band, path })
      labels.push({ id: row.policy.id, x: 748, y: middle })
    }
  })
  for (const hop of flow.hops) {
    const y = hopY.get(hop.id) ?? TOP
    nodes.push(place(hop, COLUMNS.hop, y))
    if (hop.uplink === null || !uplinkY.has(hop.uplink)) continue
    const to = (uplinkY.get(hop.uplink) ?? TOP) + NODE / 2 + port(hop.uplink, hop.id)
    lines.push({
      id: `c.${hop.id}`,
      edge: hop.edge,
      band: hop.edge === 'none' ? 0 : bandWidth(hop.rate, most),
      path: curve(right(COLUMNS.hop), y + NODE / 2, left(COLUMNS.uplink), to),
    })
  }
  for (const uplink of flow.uplinks) nodes.push(place(uplink, COLUMNS.uplink, uplinkY.get(uplink.id) ?? TOP))
  // Lines in use are drawn over unusable ones.
  lines.sort((one, other) => Number(other.edge === 'none') - Number(one.edge === 'none'))
  return { height: bottom + NODE + 5, nodes, lines, stops, labels }
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
