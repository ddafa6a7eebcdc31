// The sentence of the verdict in the language of the page.

import type { Schemas } from '@/api/client'
import type { Text } from '@/text'
import { piecesOfAll, plain, type Piece } from '@/text/phrase'
import { bareSentence } from './verdict'

type Verdict = Pick<Schemas['GatewayVerdict'], 'word' | 'sentence' | 'phrases'>

/** The sentence without its word and its age, which are drawn apart. */
export function verdictPieces(verdict: Verdict, text: Text): Piece[] {
  if (text.server === null || verdict.phrases.length === 0) return [bareSentence(verdict)]
  const phrases = verdict.phrases.filter((phrase) => phrase.code !== 'checked')
  const [first, ...rest] = piecesOfAll(phrases, text.server, ' ')
  if (typeof first !== 'string') return [' ', ...(first === undefined ? [] : [first]), ...rest]
  const bare = first.startsWith(verdict.word) ? first.slice(verdict.word.length) : ` ${first}`
  return [bare, ...rest]
}

export function verdictText(verdict: Verdict, text: Text): string {
  return plain(verdictPieces(verdict, text))
}
