// Phrases of the gateway: codes with parameters, and the texts of a language for them.

import type { Schemas } from '@/api/client'

export type Phrase = Schemas['Phrase']
export type PhraseCode = Schemas['PhraseCode']
export type CheckCode = Schemas['CheckCode']
export type Finding = Schemas['CheckFinding']

/** Part of a text: text of the language, English of the gateway, or words that lead to devices. */
export type Piece = string | { english: string } | { text: string; decision: string }

/** Parameters of a phrase or a check. What is missing is shown as such. */
export class Params {
  readonly values: Readonly<Record<string, unknown>>

  constructor(values: Readonly<Record<string, unknown>>) {
    this.values = values
  }

  text(name: string): string {
    const value = this.values[name]
    return typeof value === 'string' || typeof value === 'number' ? String(value) : '?'
  }

  number(name: string): number {
    return Number(this.values[name] ?? 0)
  }

  is(name: string): boolean {
    return this.values[name] === true
  }

  has(name: string): boolean {
    const value = this.values[name]
    return value !== undefined && value !== null && value !== ''
  }

  phrase(name: string): Phrase | null {
    const value = this.values[name]
    return isPhrase(value) ? value : null
  }

  phrases(name: string): Phrase[] {
    const value = this.values[name]
    return Array.isArray(value) ? value.filter(isPhrase) : []
  }

  findings(name: string): Finding[] {
    const value = this.values[name]
    return Array.isArray(value) ? value.filter(isFinding) : []
  }

  texts(name: string): string[] {
    const value = this.values[name]
    return Array.isArray(value) ? value.map(String) : []
  }
}

function isFinding(value: unknown): value is Finding {
  return typeof value === 'object' && value !== null && 'code' in value && 'message' in value
}

function isPhrase(value: unknown): value is Phrase {
  return typeof value === 'object' && value !== null && 'code' in value && 'text' in value
}

/** Text of a phrase in a language. */
export type PhraseText = (params: Params) => Piece[]
/** Texts of a check: the reason, and the remedy. */
export interface CheckText {
  message: (params: Params) => Piece[]
  remedy: (params: Params) => Piece[]
}

/** Texts of a language for what the gateway says. Null: the English of the gateway is shown. */
export interface ServerTexts {
  phrases: Record<PhraseCode, PhraseText>
  checks: Record<CheckCode, CheckText>
}

/** Returns the pieces of a phrase. A code without a text is shown in English. */
export function piecesOf(phrase: Phrase, texts: ServerTexts | null): Piece[] {
  const text = texts?.phrases[phrase.code] as PhraseText | undefined
  if (text) return text(new Params(phrase.params))
  return texts === null ? [phrase.text] : [{ english: phrase.text }]
}

/** Returns the pieces of several phrases with something between them. */
export function piecesOfAll(phrases: readonly Phrase[], texts: ServerTexts | null, between: string): Piece[] {
  return joined(
    phrases.map((phrase) => piecesOf(phrase, texts)),
    between,
  )
}

export function joined(parts: readonly Piece[][], between: string): Piece[] {
  return parts.flatMap((pieces, index) => (index === 0 ? pieces : [between, ...pieces]))
}

/** Returns a text without marks. */
export function plain(pieces: readonly Piece[]): string {
  return pieces
    .map((piece) => (typeof piece === 'string' ? piece : 'english' in piece ? piece.english : piece.text))
    .join('')
}

/** Returns the reasons of a check. */
export function findingPieces(findings: readonly Finding[], texts: ServerTexts | null): Piece[] {
  const one = ({ code, params, message }: Finding): Piece[] => {
    const text = texts?.checks[code] as CheckText | undefined
    return text ? text.message(new Params(params)) : [texts === null ? message : { english: message }]
  }
  return joined(findings.map(one), '; ')
}

/** Returns the remedies of a check, each once. */
export function remedyPieces(findings: readonly Finding[], texts: ServerTexts | null): Piece[] {
  const one = ({ code, params, remedy }: Finding): Piece[] => {
    const text = texts?.checks[code] as CheckText | undefined
    return text ? text.remedy(new Params(params)) : [texts === null ? remedy : { english: remedy }]
  }
  const seen = new Set<string>()
  const remedies = findings.map(one).filter((pieces) => {
    const said = plain(pieces)
    return said !== '' && !seen.has(said) && seen.add(said)
  })
  return joined(remedies, '; ')
}
