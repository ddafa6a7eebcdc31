import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { de } from './de'
import { en } from './en'
import { findingPieces, piecesOf, plain, type Finding, type Phrase } from './phrase'

interface Document {
  components: { schemas: Record<string, { enum?: string[] }> }
  paths: Record<string, Record<string, Record<string, unknown>>>
}

const document = JSON.parse(readFileSync('../gateway-api/openapi.json', 'utf8')) as Document
const codes = (schema: string) => document.components.schemas[schema]?.enum ?? []

describe('what the gateway says', () => {
  it('has a German text for each phrase and each check', () => {
    expect(codes('PhraseCode').length).toBeGreaterThan(80)
    expect(Object.keys(de.server?.phrases ?? {}).sort()).toEqual([...codes('PhraseCode')].sort())
    expect(codes('CheckCode').length).toBeGreaterThan(20)
    expect(Object.keys(de.server?.checks ?? {}).sort()).toEqual([...codes('CheckCode')].sort())
  })

  it('says something for each code, whatever parameters it has', () => {
    for (const code of codes('PhraseCode')) {
      const phrase = { code, params: {}, text: 'English' } as unknown as Phrase
      expect(plain(piecesOf(phrase, de.server)), code).not.toMatch(/^$|^English$/)
    }
  })

  it('has a German text for each action of the audit trail', () => {
    const actions = Object.values(document.paths)
      .flatMap((operations) => Object.values(operations))
      .flatMap((operation) => (operation['x-audit-action'] as string | undefined) ?? [])
    expect(actions.length).toBeGreaterThan(100)
    const missing = [...new Set(actions)].filter(
      (action) => de.actions.action(action) === en.actions.action(action),
    )
    expect(missing).toEqual([])
  })

  it('renders parameters, and marks what stays English', () => {
    const hop = {
      code: 'hop_down',
      params: { kind: 'vpn', target: 'wg-a', state: 'down', reason: 'no handshake for 192 s' },
      text: 'tunnel wg-a is down (no handshake for 192 s)',
    } as unknown as Phrase
    expect(piecesOf(hop, de.server)).toEqual([
      'Tunnel wg-a ist ausgefallen',
      ' (',
      { english: 'no handshake for 192 s' },
      ')',
    ])
    expect(piecesOf(hop, en.server)).toEqual([hop.text])
    const taken: Finding = {
      code: 'port_taken',
      params: { protocol: 'udp', address: '0.0.0.0:53', program: 'dnsmasq', pid: '7' },
      message: 'dnsmasq (process 7) has UDP port 0.0.0.0:53',
      remedy: 'stop dnsmasq',
    }
    expect(plain(findingPieces([taken], de.server))).toBe('dnsmasq (Prozess 7) belegt UDP-Port 0.0.0.0:53')
    const future = { code: 'from_a_later_version', params: {}, text: 'new' } as unknown as Phrase
    expect(piecesOf(future, de.server)).toEqual([{ english: 'new' }])
  })
})
