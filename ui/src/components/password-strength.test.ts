import { describe, expect, it } from 'vitest'
import { strengthOf } from './password-strength'
import { fileName } from './download'

describe('strength of a password', () => {
  it('is 0 below twelve characters', () => {
    expect(strengthOf('')).toBe(0)
    expect(strengthOf('Xk3!mZ9#qL1')).toBe(0)
  })
  it('is low for repetitions and sequences', () => {
    expect(strengthOf('aaaaaaaaaaaaaaaaaaaa')).toBe(1)
    expect(strengthOf('abcdefghijklmnop')).toBe(1)
    expect(strengthOf('123456789012')).toBe(1)
  })
  it('grows with length and variety', () => {
    expect(strengthOf('correct horse battery')).toBeGreaterThanOrEqual(3)
    expect(strengthOf('Xk3!mZ9#qL1$vB7&wT')).toBe(4)
  })
  it('counts characters, not code units', () => {
    expect(strengthOf('😀😀😀😀😀😀')).toBe(0)
  })
})

describe('names of files', () => {
  it('hold the host and the day', () => {
    expect(fileName('gw attic', '.age', new Date('2026-11-25T10:00:00Z'))).toBe(
      'gateway-gw-attic-2026-11-25.age',
    )
    expect(fileName(undefined, '.json', new Date('2026-11-25T10:00:00Z'))).toBe('gateway-2026-11-25.json')
  })
})
