// The most frequent clients and names, from the counters of the resolver.

import type { Schemas } from '@/api/client'

type Client = Schemas['ClientStats']

/** Lines of a list. */
const MOST = 5

/** The clients with the most queries, those first. */
export function topClients(clients: readonly Client[]): Client[] {
  return [...clients]
    .filter(({ queries }) => queries > 0)
    .sort((one, other) => other.queries - one.queries)
    .slice(0, MOST)
}

/** The names with the most queries over all clients. Names that are rare at each client may be missing. */
export function topNames(clients: readonly Client[]): { name: string; queries: number }[] {
  const counts = new Map<string, number>()
  for (const { top } of clients)
    for (const { name, queries } of top) counts.set(name, (counts.get(name) ?? 0) + queries)
  return [...counts]
    .map(([name, queries]) => ({ name, queries }))
    .sort((one, other) => other.queries - one.queries || one.name.localeCompare(other.name))
    .slice(0, MOST)
}
