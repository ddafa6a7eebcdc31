import { describe, expect, it } from 'vitest'
import { parseSearch, stringifySearch } from './search-params'

describe('filters in an address', () => {
  it('stay as they were written', () => {
    const search = { to: '2001:db8::7', port: '53', q: 'a b&c' }
    expect(stringifySearch(search)).toBe('?to=2001%3Adb8%3A%3A7&port=53&q=a+b%26c')
    expect(parseSearch(stringifySearch(search))).toEqual(search)
  })
  it('leave the address when they are empty', () => {
    expect(stringifySearch({ q: '', port: undefined })).toBe('')
    expect(parseSearch('')).toEqual({})
  })
})
