// The answer of the dry run as a sentence in the language of the page.

import type { Text } from '@/text'
import { joined, piecesOfAll, type Piece } from '@/text/phrase'
import { familiesOf, type Evaluation, type Family } from './evaluate'

/** Returns the sentence without the name of the device. */
export function answerPieces(evaluation: Evaluation, text: Text): Piece[] {
  const { server } = text
  if (server === null) {
    const [, answer = evaluation.sentence] = evaluation.sentence.split(' -> ', 2)
    return [answer]
  }
  const of = (name: string, family: Family): Piece[] => {
    const head = name ? `${name}: ${headOf(family, text)}` : headOf(family, text)
    return [`${head}: `, ...piecesOfAll(family.phrases, server, '; ')]
  }
  const families = familiesOf(evaluation)
  return joined(
    families.map(([name, family]) => of(name, family)),
    '. ',
  )
}

function headOf(family: Family, text: Text): string {
  const { heads } = text.why
  const ways = family.ways.join(', ')
  if (family.local) return heads.local
  if (family.decision === 'block') return heads.block
  if (family.decision === 'direct') return ways ? `${heads.direct} (${ways})` : heads.direct
  if (family.proxy) return `${heads.proxy} ${family.proxy}`
  return `${heads.tunnel} ${ways}`
}
