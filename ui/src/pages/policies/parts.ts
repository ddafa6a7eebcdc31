// The compiled plan as lines of text, by parts.

import type { Schemas } from '@/api/client'

export interface Part {
  name: string
  lines: string[]
  /** All lines, also those that a search leaves out. */
  count: number
}

type Plan = Schemas['RenderedPlan']

/** The parts that have lines, the rules first. */
export function partsOf(plan: Plan): Part[] {
  const lists: [string, string[]][] = [
    ['rules', plan.rules],
    ['routes', plan.routes],
    ...Object.entries(plan.maps).map(([name, map]): [string, string[]] => [name, map.entries]),
    ['excludes', plan.excludes.map((each) => `${each.destination} ${each.kind}`)],
    ['wireguard', jsonLines(plan.wireguard)],
    ['openvpn', jsonLines(plan.openvpn ?? {})],
    ['addresses', plan.addresses],
    ['sysctls', Object.entries(plan.sysctls).map(([key, value]) => `${key} = ${value}`)],
    ['verdicts', counted(plan.counters.verdicts)],
    ['prevented_leaks', counted(plan.counters.prevented_leaks)],
  ]
  return lists
    .filter(([, lines]) => lines.length > 0)
    .map(([name, lines]) => ({ name, lines, count: lines.length }))
}

function counted(counters: Record<string, { packets: number; bytes: number }>): string[] {
  return Object.entries(counters).map(([name, { packets, bytes }]) => `${name} ${packets} ${bytes}`)
}

function jsonLines(objects: object): string[] {
  return Object.entries(objects).flatMap(([name, value]) =>
    `${name} ${JSON.stringify(value, null, 2)}`.split('\n'),
  )
}

/** Leaves the lines that have all words, and the parts that have such lines or such a name. */
export function searched(parts: readonly Part[], q: string): Part[] {
  const words = q.toLowerCase().split(/\s+/).filter(Boolean)
  if (words.length === 0) return [...parts]
  return parts
    .map((part) => ({
      ...part,
      lines: part.lines.filter((line) =>
        words.every((word) => `${part.name} ${line}`.toLowerCase().includes(word)),
      ),
    }))
    .filter((part) => part.lines.length > 0)
}
