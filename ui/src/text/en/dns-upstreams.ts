import type { Schemas } from '@/api/client'

const group = (n: number) => String(n).replace(/\B(?=(\d{3})+(?!\d))/g, ' ')

export const upstreams = {
  label: 'Upstreams',
  question: 'Are names resolved, how fast, and by whom?',
  sentence: {
    stopped: 'The resolver does not run: no name is resolved.',
    stale: 'Whether names are resolved is not known.',
    none: 'The resolver runs without an upstream: only local names are answered.',
    allOk: (n: number) => (n === 1 ? 'The one upstream answers.' : `All ${group(n)} upstreams answer.`),
    unused: (n: number) =>
      n === 1 ? 'The one upstream was not asked yet.' : `None of ${group(n)} upstreams was asked yet.`,
    someFail: (bad: number, all: number) =>
      `${group(bad)} of ${all === 1 ? '1 upstream' : `${group(all)} upstreams`} ${bad === 1 ? 'does' : 'do'} not answer.`,
    fastest: (ms: string) => `The fastest takes ${ms}.`,
    today: (queries: number) => `${queries === 1 ? '1 query' : `${group(queries)} queries`} today,`,
    blocked: (n: number) => `${group(n)} blocked`,
    hits: (pct: string) => `${pct} of the lookups in the cache were hits.`,
  },
  facts: {
    title: 'Resolver',
    running: 'State',
    states: { running: 'running', stopped: 'stopped' },
    backend: 'Upstream for names without a forwarder',
    backends: { integrated: 'the upstreams above', extfilter: 'the external filter' } as Record<
      string,
      string
    >,
    mode: 'Protocol',
    modes: { plain: 'plain', dot: 'DNS over TLS', doh: 'DNS over HTTPS' } satisfies Record<
      Schemas['PresetMode'],
      string
    >,
    dnssec: 'DNSSEC',
    validated: 'answers are validated',
    notValidated: 'answers are not validated',
    listen: 'Listens on',
    filter: 'Filter',
    filterOn: (mode: string, ttl: number) => {
      const words: Record<string, string> = { null_ip: '0.0.0.0', nxdomain: 'NXDOMAIN', refused: 'REFUSED' }
      return `on: blocked names get ${words[mode] ?? mode}, TTL ${ttl} s`
    },
    filterOff: 'off',
    filterPaused: (until: string) => `paused until ${until}`,
    packetCache: 'Answered by the kernel',
    overloaded: 'Dropped, too many pending',
    limited: 'Dropped by the rate limit',
    settings: 'Settings',
  },
  settings: {
    title: 'Resolver settings',
    hint: 'Values and where they come from.',
    columns: { key: 'Setting', value: 'Value', source: 'From', apply: 'Takes effect' },
    sources: {
      default: 'default',
      bootstrap: 'configuration file',
      runtime: 'set at run time',
      env: 'environment',
    } as Record<string, string>,
    applies: { live: 'at once', restart: 'after a restart', file: 'in the file only' } as Record<
      string,
      string
    >,
    pending: 'after a restart',
    change: 'Change settings',
  },
  list: {
    title: 'Upstreams',
    hint: 'Asked for names that no zone, rule or forwarder answers.',
    empty: 'No upstream is configured.',
    columns: {
      address: 'Upstream',
      state: 'State',
      rtt: 'RTT',
      queries: 'Queries',
      failures: 'Failures',
      egress: 'Through',
      last: 'Last error',
    },
    states: { ok: 'answers', down: 'does not answer', unused: 'not asked yet' },
    problems: 'Cannot be used as configured',
  },
  rotation: {
    title: 'Choice among upstreams',
    mode: 'Choice',
    modes: {
      fastest: 'the fastest',
      load_balance: 'shared, weighted by how fast they answer',
      round_robin: 'one after another',
      random: 'at random',
      parallel: 'all at once, the first answer counts',
      sequential: 'in the order given, the next one when one fails',
    } satisfies Record<Schemas['RotationMode'], string>,
    interval: 'Seconds that a choice is kept',
    intervalHint: '0 chooses for each query.',
    sticky: 'Keep each device on its upstream',
  },
  chart: {
    title: 'Queries over time',
    hint: 'Each minute, as the gateway counted them. It keeps one day, from its start on.',
    span: 'Length of the history',
    hours: (n: number) => (n === 24 ? '1 day' : `${n} h`),
    queries: 'Queries',
    blocked: 'Blocked',
    cached: 'Cache hits',
    summary: (since: string, total: string, most: string) =>
      `Since ${since}: ${total} queries, at most ${most} a minute.`,
    waiting: 'The chart begins two minutes after the start of the gateway.',
  },
  cache: {
    title: 'Cache',
    hint: 'Answers that are kept, by name.',
    entries: 'Entries',
    size: 'Size',
    hits: 'Hits',
    misses: 'Misses',
    ratio: 'Hit ratio',
    pattern: 'Names, with * for any characters',
    show: 'Show',
    flush: 'Flush',
    flushPattern: (pattern: string) => `Flush ${pattern}`,
    flushAll: 'Flush all',
    flushed: (n: number) => (n === 1 ? '1 entry is flushed.' : `${group(n)} entries are flushed.`),
    flushConsequence: 'Every name is asked for again at the upstreams, which takes longer for a while.',
    flushWord: 'flush',
    empty: 'The cache has no such entry.',
    first: (n: number) => `The first ${group(n)} entries.`,
    stale: 'expired, kept as a stale answer',
    columns: { name: 'Name', type: 'Type', ttl: 'TTL left', rcode: 'Response', upstream: 'From' },
  },
  clients: {
    title: 'Clients',
    hint: 'Who asks most.',
    empty: 'No client has asked yet.',
    columns: {
      client: 'Client',
      queries: 'Queries',
      blocked: 'Blocked',
      cached: 'Cached',
      seen: 'Last seen',
      top: 'Most frequent names',
    },
  },
}
