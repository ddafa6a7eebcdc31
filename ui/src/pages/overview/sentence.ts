// The sentence of the verdict, with links where its words are recognised.

export interface Part {
  text: string
  /** Where the words lead. */
  to?: string
  search?: Record<string, string>
}

interface Named {
  id: string
  name: string
}

export interface Names {
  tunnels: readonly Named[]
  policies: readonly Named[]
  devices: readonly Named[]
}

interface Match {
  from: number
  length: number
  to: string
  search?: Record<string, string>
}

/** Counts as the daemon words them, and the list of devices behind each. */
const COUNTS: readonly (readonly [pattern: RegExp, decision: string, to?: string])[] = [
  [/\d+ protected (?:device|host)s?(?: leaves? through (?:its|their) policy)?/g, 'protected'],
  [/\d+ leaves? through (?:its|their) policy/g, 'through_policy'],
  [/\d+ (?:is|are) cut off on purpose/g, 'block'],
  [/\d+ (?:device|host)s? leaves? directly/g, 'direct'],
  // Hosts that no policy is for may be no devices, so they are in the list of hosts.
  [/\d+ leaves? directly, no policy covers (?:it|them)/g, 'no_policy', '/devices/hosts'],
  [/\d+ by an exception/g, 'direct_by_exception'],
  [/\d+ because the policy fails open/g, 'failed_open'],
  [/\d+ without a policy/g, 'no_policy'],
]

/** Names beyond this many are not looked for. */
const MOST_NAMES = 2000

/** Splits a sentence into text and links. */
export function partsOf(sentence: string, names: Names): Part[] {
  const found: Match[] = []
  for (const [pattern, decision, to = '/devices'] of COUNTS)
    for (const match of sentence.matchAll(pattern))
      found.push({
        from: match.index,
        length: match[0].length,
        to,
        search: { decision },
      })
  const lists: [readonly Named[], string][] = [
    [names.tunnels, '/paths/tunnels/'],
    [names.policies, '/policies/'],
    [names.devices, '/devices/'],
  ]
  for (const [list, to] of lists)
    for (const { id, name } of list.slice(0, MOST_NAMES)) {
      const at = wordAt(sentence, name)
      if (at >= 0) found.push({ from: at, length: name.length, to: `${to}${id}` })
    }
  found.sort((one, other) => one.from - other.from || other.length - one.length)
  const parts: Part[] = []
  let end = 0
  for (const match of found) {
    if (match.from < end) continue
    if (match.from > end) parts.push({ text: sentence.slice(end, match.from) })
    parts.push({
      text: sentence.slice(match.from, match.from + match.length),
      to: match.to,
      search: match.search,
    })
    end = match.from + match.length
  }
  if (end < sentence.length) parts.push({ text: sentence.slice(end) })
  return parts
}

/** Index of a name that stands as a word of its own, else -1. Short names are everyday words too often. */
function wordAt(sentence: string, name: string): number {
  if (name.length < 2) return -1
  for (let at = sentence.indexOf(name); at >= 0; at = sentence.indexOf(name, at + 1)) {
    const before = sentence[at - 1] ?? ' '
    const after = sentence[at + name.length] ?? ' '
    if (/[\s:"(,]/.test(before) && /[\s",.;:)]/.test(after)) return at
  }
  return -1
}
