// Rights of a role, kind by kind.

import type { Schemas } from '@/api/client'

type Permission = Schemas['Permission']

/** The permissions with this right on the chosen kinds only. Other rights stay; a kind without a right goes. */
export function permissionsOf(
  permissions: readonly Permission[],
  right: 'push' | 'pull',
  chosen: readonly string[],
): Permission[] {
  const known = new Set<string>(permissions.map(({ kind }) => kind))
  const added = chosen.filter((kind) => !known.has(kind)) as Permission['kind'][]
  return [...permissions, ...added.map((kind) => ({ kind, push: false, pull: false, approve: false }))]
    .map((each) => ({ ...each, [right]: chosen.includes(each.kind) }))
    .filter(({ push, pull, approve }) => push || pull || approve)
}
