import { editor, lists } from './dns-lists'
import { privacy } from './dns-privacy'
import { upstreams } from './dns-upstreams'
import { zones } from './dns-zones'

const count = (n: number, one: string, many: string) => (n === 1 ? `1 ${one}` : `${group(n)} ${many}`)
/** Thousands apart: `18 204`. */
const group = (n: number) => String(n).replace(/\B(?=(\d{3})+(?!\d))/g, ' ')

export const dns = {
  label: 'DNS & Privacy',
  editor,
  lists,
  zones,
  upstreams,
  privacy,
  log: {
    label: 'Query log',
    question: 'Why was this site blocked, and who asked for it?',
    made: (since: string, until: string | null, clients: number, queries: number) =>
      `${until === null ? `Since ${since}` : `From ${since} to ${until}`}, ${count(clients, 'client', 'clients')} made ${count(queries, 'query', 'queries')}.`,
    noneBlocked: 'None was blocked.',
    blockedCount: (blocked: number) => (blocked === 1 ? '1 was blocked' : `${group(blocked)} were blocked`),
    by: (reason: string, n: number) => {
      const words: Record<string, string> = {
        rule: n === 1 ? 'by a rule' : 'by rules',
        blocklist: 'by the blocklist',
        threat_feed: 'by threat feeds',
        canary: 'as a canary name',
        rewrite: 'by a rewrite',
        none: 'without a match',
      }
      return `${group(n)} ${words[reason] ?? `by ${reason}`}`
    },
    live: 'Live',
    frozen: 'Frozen',
    rangeEnds: 'The chosen range has an end, so nothing new can appear in it.',
    download: 'Download the entries shown',
    newRows: (n: number, more: boolean) => (more ? `More than ${group(n)} new` : `${group(n)} new`),
    empty: 'The log has no queries. Devices whose privacy class keeps no log do not appear.',
    noMatch: 'None of the loaded queries matches the filters.',
    older: 'Older',
    searched: (time: string | null, loaded: number, shown: number, end: boolean) =>
      `${time === null ? 'Nothing is loaded.' : `Searched back to ${time}: ${group(shown)} of ${count(loaded, 'loaded query', 'loaded queries')} shown.`} ${
        end ? 'The log has nothing older.' : 'Nothing older was read yet.'
      }`,
    most: (n: number) => `The page keeps ${group(n)} queries in memory. Older ones replace the newest.`,
    lost: (n: number) =>
      `${count(n, 'record was', 'records were')} lost since the start because they arrived faster than they could be written.`,
    onlyLoaded: (filters: string[], loaded: number) =>
      `${filters.join(', ')}: applied by this page to the ${count(loaded, 'loaded query', 'loaded queries')}, not to the whole log.`,
    chart: (from: string, to: string, queries: number, blocked: number, most: number) =>
      `Queries from ${from} to ${to}: ${group(queries)}, of them ${group(blocked)} blocked, at most ${group(most)} in one bar. Drag to choose a range; the time filter does the same by keyboard.`,
    brushHint: 'loaded queries; drag to choose a range',
    domain: 'Domain',
    domainHint: 'Domain, or part of one',
    time: 'Time',
    filters: {
      domain: 'Domain',
      client: 'Client',
      status: 'Verdict',
      reason: 'Match',
      list: 'List or rule',
      type: 'Type',
      upstream: 'Upstream',
      cached: 'Cached',
      slower: 'Slower than',
      from: 'From',
      to: 'To',
    },
    removeFilter: (name: string) => `Remove filter: ${name}`,
    clear: 'Clear filters',
    range: (from: string | null, to: string | null) =>
      from === null ? `until ${to ?? ''}` : `${from} to ${to ?? 'now'}`,
    last: (minutes: number) =>
      minutes < 60 ? `last ${minutes} min` : minutes === 1440 ? 'last day' : `last ${minutes / 60} h`,
    from: 'From',
    to: 'to',
    set: 'Set',
    columns: {
      time: 'Time',
      client: 'Client',
      question: 'Question',
      type: 'Type',
      verdict: 'Verdict',
      because: 'Because',
      answered: 'Answered by',
      took: 'Took',
    },
    statuses: {
      allowed: 'Allowed',
      blocked: 'Blocked',
      cached: 'Cached',
      rewritten: 'Rewritten',
      forwarded: 'Forwarded',
      refused: 'Refused',
      error: 'Error',
    } as Record<string, string>,
    reasons: {
      rule: 'Filter rule',
      allowlist: 'Allowlist',
      blocklist: 'Blocklist',
      threat_feed: 'Threat feed',
      rewrite: 'Rewrite',
      canary: 'Canary name',
      none: 'No match',
    } as Record<string, string>,
    reasonOf: (reason: string, name: string) => {
      const words: Record<string, string> = {
        rule: 'rule',
        allowlist: 'allowlist',
        blocklist: 'blocklist',
        threat_feed: 'feed',
        rewrite: 'rewrite',
        canary: 'canary name',
      }
      return `${words[reason] ?? reason} ${name}`.trim()
    },
    noRule: 'no rule',
    unknownClient: 'unknown',
    noClient: 'not logged',
    fromCache: 'cache',
    notAsked: 'not asked',
    local: 'local',
    noAnswer: 'no answer',
    slow: 'slow',
    actionsFor: (name: string) => `Actions for ${name}`,
    thisName: (verb: 'allow' | 'block'): string => (verb === 'allow' ? 'Allow this name' : 'Block this name'),
    domainAndBelow: (verb: 'allow' | 'block', domain: string) =>
      verb === 'allow' ? `Allow ${domain} and all below` : `Block ${domain} and all below`,
    onlyDevice: (verb: 'allow' | 'block', device: string) =>
      verb === 'allow' ? `Allow for ${device} only` : `Block for ${device} only`,
    done: (verb: 'allow' | 'block', name: string, below: boolean) =>
      `${name}${below ? ' and all names below it are' : ' is'} ${verb === 'allow' ? 'allowed' : 'blocked'} now.`,
    why: 'Why',
    direct: {
      button: 'Direct for 10 min',
      sentence: (device: string, name: string, minutes: number) =>
        `${device} reaches ${name} by the default route, past its policy, for ${minutes} min. Servers then see the address of the uplink.`,
      stillFiltered: 'The filter goes on blocking the name; allow it there as well.',
      reason: 'Reason',
      done: (name: string) => `The exception for ${name} is active.`,
    },
    facts: {
      rule: 'Rule',
      list: 'List',
      through: 'Matched name',
      upstream: 'Upstream',
      rcode: 'Response code',
      ede: 'Extended error',
      dnssec: 'DNSSEC',
      proto: 'Transport',
      took: 'Took',
      time: 'Time',
      id: 'Entry',
      answers: (n: number) => (n === 0 ? 'No records in the answer' : n === 1 ? 'Answer' : `${n} answers`),
    },
    validated: 'validated',
    notValidated: 'not validated',
    protocols: { plain: 'plain', dot: 'DNS over TLS', doh: 'DNS over HTTPS' } as Record<string, string>,
    sameName: 'All queries for this name',
    sameClient: 'All queries of this client',
    sameList: 'All that this rule or list matched',
  },
}
