import { describe, expect, it } from 'vitest'
import { editsSince, isSame, restoring } from './discard'
import type { Pending } from './model'

const entry = (timestamp: string, id: string, fields: string[], result = 'success') =>
  ({
    timestamp,
    actor: 'mara',
    result,
    details: { changes: [{ type: 'routing_policy', id, fields }] },
  }) as never

describe('editsSince', () => {
  it('joins the fields of a policy after the apply', () => {
    const edits = editsSince(
      [
        entry('2026-01-01T12:00:02Z', 'a', ['priority']),
        entry('2026-01-01T12:00:01.5Z', 'a', ['hops', 'priority']),
        entry('2026-01-01T12:00:01Z', 'b', ['name'], 'failed'),
        entry('2026-01-01T11:00:00Z', 'a', ['name']),
      ],
      '2026-01-01T12:00:00.128651651Z',
    )
    expect(edits.get('a')).toEqual({ fields: ['priority', 'hops'], actors: ['mara'] })
    expect(edits.has('b')).toBe(false)
  })
})

describe('restoring', () => {
  const applied = {
    priority: 10,
    name: 'x',
    fail_policy: 'fail-closed',
    hops: [{ type: 'vpn', target: 'a', usable: true, reason: '' }],
  }
  const stored = { profile: null, chain: null, privacy_class: null }
  const pending = (kind: string, change = {}) =>
    ({ id: 'a', name: 'x', kind, stored: { ...stored, ...change }, applied }) as unknown as Pending
  it('deletes a new policy and writes back what the daemon shows', () => {
    expect(restoring(pending('new'), undefined)).toBe('delete')
    expect(restoring(pending('edited'), { fields: ['priority', 'hops'], actors: [] })).toEqual({
      priority: 10,
      hops: [{ type: 'vpn', target: 'a' }],
    })
  })
  it('gives up where it cannot know', () => {
    expect(restoring(pending('edited'), undefined)).toBeNull()
    expect(restoring(pending('edited'), { fields: ['sticky'], actors: [] })).toBeNull()
    expect(restoring(pending('edited', { profile: 'p' }), { fields: ['hops'], actors: [] })).toBeNull()
    expect(
      restoring({ ...pending('removed'), stored: undefined }, { fields: ['name'], actors: [] }),
    ).toBeNull()
  })
  it('knows that edits took each other back', () => {
    expect(isSame(0, { fields: ['priority'], actors: [] })).toBe(true)
    expect(isSame(1, { fields: ['priority'], actors: [] })).toBe(false)
    expect(isSame(0, { fields: ['sticky'], actors: [] })).toBe(false)
    expect(isSame(0, undefined)).toBe(false)
  })
})
