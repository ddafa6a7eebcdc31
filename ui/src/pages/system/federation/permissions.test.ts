import { describe, expect, it } from 'vitest'
import { permissionsOf } from './permissions'

const dns = { kind: 'dns', push: true, pull: false, approve: false } as const

describe('rights of a role', () => {
  it('are added to those of a kind', () => {
    expect(permissionsOf([dns], 'pull', ['dns', 'routing'])).toEqual([
      { ...dns, pull: true },
      { kind: 'routing', push: false, pull: true, approve: false },
    ])
  })

  it('go with the last right of a kind', () => {
    expect(permissionsOf([dns], 'push', [])).toEqual([])
    expect(permissionsOf([{ ...dns, approve: true }], 'push', [])).toEqual([
      { ...dns, push: false, approve: true },
    ])
  })
})
