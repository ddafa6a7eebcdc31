// Changes of a plan by kind of object.

import type { Schemas } from '@/api/client'

export interface KindCounts {
  kind: string
  create: number
  update: number
  remove: number
  unchanged: number
}

const FIELD: Record<string, 'create' | 'update' | 'remove' | 'unchanged'> = {
  create: 'create',
  update: 'update',
  delete: 'remove',
  unchanged: 'unchanged',
}

export function countsByKind(changes: Pick<Schemas['ItemChange'], 'op' | 'type'>[]): KindCounts[] {
  const kinds = new Map<string, KindCounts>()
  for (const { op, type } of changes) {
    const counts = kinds.get(type) ?? { kind: type, create: 0, update: 0, remove: 0, unchanged: 0 }
    const field = FIELD[op]
    if (field) counts[field] += 1
    kinds.set(type, counts)
  }
  return [...kinds.values()].sort((one, other) => one.kind.localeCompare(other.kind))
}

/** Joins warnings that say the same of several objects. */
export function groupWarnings(warnings: Schemas['Warning'][]): { message: string; paths: string[] }[] {
  const groups = new Map<string, string[]>()
  for (const { message, path } of warnings) {
    const paths = groups.get(message) ?? []
    if (path) paths.push(path)
    groups.set(message, paths)
  }
  return [...groups].map(([message, paths]) => ({ message, paths }))
}
