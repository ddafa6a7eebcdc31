import { describe, expect, it } from 'vitest'
import { armour, readExport } from './export-file'
import { countsByKind, groupWarnings } from './plan-counts'

const bytes = (text: string) => new TextEncoder().encode(text)

describe('files of exports', () => {
  it('are plain documents', () => {
    const file = readExport(bytes('{"schema":"gateway-config/1","resources":{}}'))
    expect(file).toEqual({ kind: 'plain', document: { schema: 'gateway-config/1', resources: {} } })
  })
  it('are documents inside an answer of the API', () => {
    expect(readExport(bytes('{"data":{"schema":"gateway-config/1"}}'))?.kind).toBe('plain')
  })
  it('are age files in binary form, which become text', () => {
    const file = readExport(bytes('age-encryption.org/v1\n-> scrypt'))
    expect(file?.kind).toBe('encrypted')
    expect(file?.kind === 'encrypted' && file.content.split('\n')[0]).toBe(
      '-----BEGIN AGE ENCRYPTED FILE-----',
    )
  })
  it('are age files in text form, alone or in an answer', () => {
    const text = armour(bytes('age-encryption.org/v1'))
    expect(readExport(bytes(text))).toEqual({ kind: 'encrypted', content: text.trim() })
    expect(readExport(bytes(JSON.stringify({ data: { content: text } })))?.kind).toBe('encrypted')
  })
  it('are nothing else', () => {
    expect(readExport(bytes('hello'))).toBeNull()
    expect(readExport(bytes('[1]'))).toBeNull()
    expect(readExport(bytes('{"a":1}'))).toBeNull()
  })
  it('have lines of 64 characters in text form', () => {
    const lines = armour(new Uint8Array(200)).trim().split('\n')
    expect(lines.slice(1, -2).every((line) => line.length === 64)).toBe(true)
  })
})

describe('changes by kind', () => {
  it('are counted', () => {
    const counts = countsByKind([
      { op: 'create', type: 'tunnel' },
      { op: 'unchanged', type: 'device' },
      { op: 'delete', type: 'tunnel' },
    ])
    expect(counts).toEqual([
      { kind: 'device', create: 0, update: 0, remove: 0, unchanged: 1 },
      { kind: 'tunnel', create: 1, update: 0, remove: 1, unchanged: 0 },
    ])
  })
})

describe('warnings of a plan', () => {
  it('are joined where they say the same', () => {
    expect(
      groupWarnings([
        { path: 'a[0]', message: 'x' },
        { path: 'a[1]', message: 'x' },
        { path: '', message: 'y' },
      ]),
    ).toEqual([
      { message: 'x', paths: ['a[0]', 'a[1]'] },
      { message: 'y', paths: [] },
    ])
  })
})
