import { describe, expect, it } from 'vitest'

// The budget is counted from the sources, so that a new read of the page counts by itself.
const sources = import.meta.glob<string>(
  ['./*.tsx', '../../app/*.{ts,tsx}', '../../components/exceptions/exception-row.tsx'],
  {
    query: '?raw',
    import: 'default',
    eager: true,
  },
)

/** Pause between two reads that useGet makes without one, in seconds. */
const DEFAULT = 15

/** Reads of a source, by path and query: the pause in seconds. Reads of what is opened first are left out. */
function reads(source: string): [read: string, seconds: number][] {
  return [...source.matchAll(/useGet\(\s*'([^']+)'((?:[^()]|\([^()]*\))*)\)/g)].flatMap(
    ([, path, rest = '']) => {
      if (/enabled|\bonce\b|every: false/.test(rest)) return []
      const every = /every: ([\d_]+)/.exec(rest)?.[1]
      const query = /query: \{[^}]*\}/.exec(rest)?.[0] ?? ''
      return [[`${path} ${query}`, every ? Number(every.replaceAll('_', '')) / 1000 : DEFAULT]]
    },
  )
}

describe('requests of the overview', () => {
  const pauses = new Map<string, number>()
  for (const source of Object.values(sources))
    for (const [read, seconds] of reads(source))
      pauses.set(read, Math.min(seconds, pauses.get(read) ?? Infinity))

  it('are found in the sources', () => {
    expect(pauses.get('/status ')).toBe(3)
    expect(pauses.get('/policy/paths/graph ')).toBe(6)
    expect(pauses.get('/tunnels/history query: { minutes: MINUTES + 1 }')).toBe(60)
    expect(pauses.size).toBeGreaterThan(12)
  })
  it('are far fewer than 60 in a minute', () => {
    const perMinute = [...pauses.values()].reduce((sum, seconds) => sum + 60 / seconds, 0)
    expect(perMinute).toBeLessThanOrEqual(54)
  })
})
