import { describe, expect, it } from 'vitest'
import { otherFields } from './other-fields'

describe('errors of fields', () => {
  it('are left out where the message has them', () => {
    const fields = [{ path: 'config', message: 'line 2: unknown key PrivatKey', code: 'invalid' }]
    expect(otherFields({ message: 'Line 2: unknown key PrivatKey.', fields })).toEqual([])
    expect(otherFields({ message: '1 field is invalid.', fields: [...fields, ...fields] })).toEqual(fields)
  })
})
