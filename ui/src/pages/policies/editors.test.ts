import { expect, it } from 'vitest'
import { editorsSince } from './editors'

const entry = (timestamp: string, actor: string, id: string, type = 'routing_policy', result = 'success') =>
  ({ timestamp, actor, result, details: { changes: [{ type, id }] } }) as never

it('names the actors of each policy after a time', () => {
  const editors = editorsSince(
    [
      entry('2026-01-01T12:00:04Z', 'mara', 'a'),
      entry('2026-01-01T12:00:03Z', 'tom', 'a'),
      entry('2026-01-01T12:00:02Z', 'mara', 'a'),
      entry('2026-01-01T12:00:02Z', 'mara', 'b', 'device'),
      entry('2026-01-01T12:00:02Z', 'mara', 'c', 'routing_policy', 'failed'),
      entry('2026-01-01T12:00:00Z', 'mara', 'd'),
    ],
    '2026-01-01T12:00:00Z',
  )
  expect([...editors]).toEqual([['a', ['mara', 'tom']]])
  expect(editorsSince([{ details: null } as never], null).size).toBe(0)
})
