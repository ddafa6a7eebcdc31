// Lists of objects in a form: `peers[0].endpoint`. The keys are the paths of the fields in the errors of the daemon.

import type { Values } from './form'

/** Numbers of the objects of a list that the form has. */
export function numbersOf(values: Values, list: string): number[] {
  const found = new Set<number>()
  for (const key of Object.keys(values)) {
    const number = parse(key, list)?.number
    if (number !== undefined) found.add(number)
  }
  return [...found].sort((one, other) => one - other)
}

/** Number of the next object of a list. */
export function nextNumber(values: Values, list: string): number {
  return Math.max(-1, ...numbersOf(values, list)) + 1
}

/** Removes an object. Those after it move up, so that numbers and paths agree. */
export function withoutNumber(values: Values, list: string, removed: number): Values {
  const rest: Values = {}
  for (const [key, value] of Object.entries(values)) {
    const parsed = parse(key, list)
    if (!parsed || parsed.number < removed) rest[key] = value
    else if (parsed.number > removed) rest[`${list}[${parsed.number - 1}].${parsed.field}`] = value
  }
  return rest
}

function parse(key: string, list: string): { number: number; field: string } | null {
  if (!key.startsWith(`${list}[`)) return null
  const found = /^\[(\d+)\]\.(.+)$/.exec(key.slice(list.length))
  return found ? { number: Number(found[1]), field: found[2] ?? '' } : null
}
