/** Lists of the most frequent clients and names. */
export const top = {
  clients: 'Top clients',
  names: 'Top names',
  hint: 'By DNS queries since the daemon started.',
  namesHint: 'Summed over the names that each client asks for most, since the daemon started.',
  empty: 'No query has been counted yet.',
  queries: (count: string) => `${count} queries`,
  blocked: (count: string) => `${count} blocked`,
  device: (queries: string, blocked: string, cached: string) =>
    `Since the daemon started: ${queries} queries, ${blocked} blocked, ${cached} from the cache.`,
  deviceNone: 'No query of it has been counted since the daemon started.',
}
