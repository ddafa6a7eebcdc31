// Files of exports: a plain document, or an encrypted one in the binary or the text form of age.

import type { Schemas } from '@/api/client'

export type ExportFile =
  { kind: 'plain'; document: Schemas['DocumentInput'] } | { kind: 'encrypted'; content: string }

const BEGIN = '-----BEGIN AGE ENCRYPTED FILE-----'
const END = '-----END AGE ENCRYPTED FILE-----'
const BINARY = 'age-encryption.org/'

/** Recognises an export. Returns `null` for any other file. */
export function readExport(bytes: Uint8Array): ExportFile | null {
  const text = new TextDecoder().decode(bytes)
  if (text.startsWith(BINARY)) return { kind: 'encrypted', content: armour(bytes) }
  if (text.trimStart().startsWith(BEGIN)) return { kind: 'encrypted', content: text.trim() }
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return null
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null
  const document = ('data' in value && typeof value.data === 'object' ? value.data : value) as Record<
    string,
    unknown
  >
  if (typeof document.content === 'string' && document.content.includes(BEGIN))
    return { kind: 'encrypted', content: document.content }
  if (typeof document.schema === 'string' && document.schema.startsWith('gateway-config/'))
    return { kind: 'plain', document: document as Schemas['DocumentInput'] }
  return null
}

/** The text form of an age file: base64 in lines of 64 characters. */
export function armour(bytes: Uint8Array): string {
  let binary = ''
  for (let start = 0; start < bytes.length; start += 0x8000)
    binary += String.fromCharCode(...bytes.subarray(start, start + 0x8000))
  const lines = btoa(binary).match(/.{1,64}/g) ?? []
  return [BEGIN, ...lines, END, ''].join('\n')
}
