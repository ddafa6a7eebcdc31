import { describe, expect, it } from 'vitest'
import { causesOf, isQuiet, parseAlert, withAlert, type LiveAlert } from './alerts'

const down: LiveAlert = {
  kind: 'tunnel_down',
  subject: 'wg-a',
  message: 'down',
  since: '2026-01-01T10:00:00Z',
}
const low: LiveAlert = { kind: 'storage_low', subject: '/', message: 'full', since: '2026-01-01T11:00:00Z' }

describe('alerts of the stream', () => {
  it('are kept newest first, each once', () => {
    const list = withAlert(withAlert([], { ...low, active: true }), { ...down, active: true })
    expect(list).toEqual([low, down])
    expect(withAlert(list, { ...down, message: 'still', active: true })).toEqual([
      low,
      { ...down, message: 'still' },
    ])
  })
  it('leave the list when they end', () => {
    expect(withAlert([low, down], { ...down, active: false })).toEqual([low])
  })
  it('are read from the data of an event', () => {
    expect(parseAlert(JSON.stringify({ ...down, active: true }))).toEqual({ ...down, active: true })
    expect(parseAlert('{')).toBeNull()
    expect(parseAlert('{}')).toBeNull()
  })
  it('count without those that another one explains, while that lasts', () => {
    const cause = { ...down, kind: 'wan_down', id: 1 }
    const follows = { ...down, id: 2, caused_by: 1 }
    expect(parseAlert(JSON.stringify(follows))).toMatchObject({ id: 2, caused_by: 1 })
    expect(causesOf([low, follows, cause])).toEqual([low, cause])
    expect(causesOf([low, follows])).toEqual([low, follows])
  })
})

describe('isQuiet', () => {
  it('is a periodic run without trouble, and nothing else', () => {
    expect(isQuiet('{"run":1,"revision":3,"reason":"interval","ok":true}')).toBe(true)
    expect(isQuiet('{"reason":"interval","ok":false}')).toBe(false)
    expect(isQuiet('{"reason":"facts","ok":true}')).toBe(false)
    expect(isQuiet('?')).toBe(false)
  })
})
