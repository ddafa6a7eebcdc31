import type { Schemas } from '@/api/client'
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
    /** `name` is null if the list is deleted, or if no list decided. */
    by: (reason: string, name: string | null, n: number) => {
      const words: Record<string, string> = {
        rule: name === null ? 'by a deleted rule' : `by rule ${name}`,
        blocklist: name === null ? 'by a deleted entry of the blocklist' : `by ${name}`,
        threat_feed: name === null ? 'by a deleted feed' : `by ${name}`,
        canary: n === 1 ? 'as a canary name' : 'as canary names',
        privacy: 'by a privacy switch',
        rewrite: 'by a rewrite',
        none: 'without a match',
      }
      return `${group(n)} ${words[reason] ?? `by ${reason}`}`
    },
    byOthers: (n: number) => `${group(n)} by others`,
    live: 'Live',
    frozen: 'Frozen',
    rangeEnds: 'The chosen range has an end, so nothing new can appear in it.',
    download: 'Download the entries shown',
    newRows: (n: number, more: boolean) => (more ? `More than ${group(n)} new` : `${group(n)} new`),
    none: 'The log has no queries.',
    unread: 'The log could not be read.',
    empty:
      'Queries of devices that use this gateway for DNS appear here. Devices whose privacy class keeps no log do not.',
    noMatch: (since: string | null) =>
      since === null ? 'No query in the log matches.' : `Since ${since}, no query matches.`,
    older: 'Older',
    searched: (time: string | null, matches: number) =>
      `${time === null ? '' : `Searched back to ${time}, `}${matches === 0 ? 'no match' : count(matches, 'match', 'matches')}.`,
    searchedEarly: 'The search ended there because it had read very many records; “Older” goes on.',
    linked: 'The query that this link names; the list below does not reach it.',
    linkedGone: 'The query that this link names is not in the log any more.',
    nothingOlder: 'The log has nothing older.',
    wholeRange: 'That is the whole range.',
    notRead: 'Nothing older was read yet.',
    most: (n: number) => `The page keeps ${group(n)} queries in memory. Older ones replace the newest.`,
    lost: (n: number) =>
      `${count(n, 'record was', 'records were')} lost since the start because they arrived faster than they could be written.`,
    chart: (from: string, to: string, queries: number, blocked: number, most: number) =>
      `Queries from ${from} to ${to}: ${group(queries)}, of them ${group(blocked)} blocked, at most ${group(most)} in one bar. Drag to choose a range; the table and the time filter do the same by keyboard.`,
    bars: 'Queries over time',
    allQueries: 'All queries',
    inList: 'In the list',
    brushHint: 'all queries; marked: in the list; drag to choose a range',
    brushNarrowed: 'pale: all queries; dark: those in the list; drag to choose a range',
    domain: 'Domain',
    domainHint: 'Domain or part of one, ! leaves it out',
    time: 'Time',
    filters: {
      domain: 'Domain',
      client: 'Client',
      status: 'Verdict',
      list: 'List or rule',
      type: 'Type',
      upstream: 'Upstream',
      egress: 'Path',
      cached: 'Cached',
      slower: 'Slower than',
      from: 'From',
      to: 'To',
    },
    not: (filter: string) => `Not ${filter.toLowerCase()}`,
    except: 'leave these out',
    others: (n: number) => (n === 1 ? '1 more' : `${group(n)} more`),
    valueHints: {
      client: 'address or MAC address',
      type: 'type',
      upstream: 'part of its address',
      slower: 'milliseconds',
    } as Partial<Record<string, string>>,
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
    leftBy: {
      blocked: (cause: string) => (cause === '' ? 'Blocked' : `Blocked: ${cause}`),
      down: (hops: string, several: boolean) => `${hops} ${several ? 'are' : 'is'} down`,
      direct: 'Allowed, direct',
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
    reasonOf: (reason: string, name: string) => {
      const words: Record<string, string> = {
        rule: 'rule',
        allowlist: 'allowlist',
        blocklist: 'blocklist',
        threat_feed: 'feed',
        rewrite: 'rewrite',
        canary: 'canary name',
        privacy: 'privacy switch',
      }
      return `${words[reason] ?? reason} ${name}`.trim()
    },
    noRule: 'no rule',
    unknownClient: 'unknown',
    noClient: 'not logged',
    via: (egress: string) => (egress === 'auto' ? 'by the default route' : `via ${egress}`),
    defaultRoute: 'Default route',
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
    /** The one action of a row. */
    quick: (verb: 'allow' | 'block'): string => (verb === 'allow' ? 'Allow' : 'Block'),
    quickFor: (verb: 'allow' | 'block', name: string) => `${verb === 'allow' ? 'Allow' : 'Block'} ${name}`,
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
      egress: 'Path',
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
    protocols: { plain: 'plain', dot: 'DNS over TLS', doh: 'DNS over HTTPS' } satisfies Record<
      Schemas['PresetMode'],
      string
    >,
    sameName: 'All queries for this name',
    sameClient: 'All queries of this client',
    sameList: 'All that this rule or list matched',
    sameEgress: (egress: string) => `All that ${egress === 'auto' ? 'the default route' : egress} carried`,
  },
}
