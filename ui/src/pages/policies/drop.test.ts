import { describe, expect, it } from 'vitest'
import { de } from '@/text/de'
import { en } from '@/text/en'
import { dropOf } from './drop'
import type { LeakMatrix } from './model'

const row = (policy_id: string, outcome: string) => ({ policy_id, cells: { down: { outcome } } })
const matrix = (...rows: ReturnType<typeof row>[]) => ({ rows }) as unknown as LeakMatrix

describe('what happens when all tunnels drop', () => {
  const all = matrix(
    row('bypass', 'direct'),
    row('portal', 'direct'),
    row('by-profile', 'blocked'),
    row('closed', 'blocked'),
    row('open', 'direct'),
    row('proxied', 'tunnel'),
    row('default', 'blocked'),
    row('segment', 'direct'),
  )
  const known = {
    exceptions: [
      { id: 'bypass', type: 'emergency-bypass' },
      { id: 'portal', type: 'captive-portal' },
      { id: 'by-profile', type: 'temporary-direct' },
    ],
    graph: [
      { id: 'default', origin: 'profile' },
      { id: 'segment', origin: 'bridge' },
      { id: 'closed', origin: 'policy' },
    ],
  }
  it('counts policies only as policies', () => {
    const { policies } = dropOf(all, known)
    expect(policies).toEqual({ total: 3, blocked: 1, direct: 1, other: 1 })
  })
  it('counts exceptions by what they do', () => {
    const { exceptions } = dropOf(all, known)
    expect(exceptions).toEqual({ direct: 1, some: 1, blocked: 1, other: 0 })
  })
  it('counts the profiles of devices', () => {
    expect(dropOf(all, known).profiles).toEqual({ total: 1, blocked: 1, direct: 0, other: 0 })
  })
  it('knows an exception by the graph alone, and takes what is not known as a policy', () => {
    const { policies, exceptions } = dropOf(matrix(row('ended', 'direct'), row('new', 'blocked')), {
      exceptions: [],
      graph: [{ id: 'ended', origin: 'exception' }],
    })
    expect(exceptions.direct).toBe(1)
    expect(policies).toEqual({ total: 1, blocked: 1, direct: 0, other: 0 })
  })
  it('says so in words', () => {
    expect(en.policies.exceptionsDrop({ direct: 1, some: 0, blocked: 0, other: 0 })).toBe(
      '1 exception lets its device out directly',
    )
    expect(en.policies.exceptionsDrop({ direct: 2, some: 1, blocked: 0, other: 0 })).toBe(
      '2 exceptions let their devices out directly, 1 exception lets some traffic of its device out directly',
    )
    expect(de.policies.exceptionsDrop({ direct: 1, some: 0, blocked: 2, other: 0 })).toBe(
      '1 Ausnahme lässt ihr Gerät direkt hinaus, 2 Ausnahmen sperren ihre Geräte',
    )
  })
})
