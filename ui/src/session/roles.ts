// Roles of accounts, weakest first.

import type { Schemas } from '@/api/client'

export type Role = Schemas['Role']

const ORDER: readonly string[] = ['viewer', 'operator', 'admin']

/** Reports whether a role may do what needs another one. */
export function mayDo(role: Role | null | undefined, needed: Role): boolean {
  return ORDER.indexOf(role ?? '') >= ORDER.indexOf(needed)
}
