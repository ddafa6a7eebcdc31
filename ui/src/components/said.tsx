// What the gateway says, in the language of the page. What stays English is marked as English, so that it is read as such.

import type { ReactNode } from 'react'
import { Link } from '@/session/link'
import { useText } from '@/text'
import {
  findingPieces,
  piecesOfAll,
  remedyPieces,
  type Finding,
  type Phrase,
  type Piece,
} from '@/text/phrase'

/** A sentence that exists in English only. */
export function English({ children }: { children: ReactNode }) {
  return <span lang="en">{children}</span>
}

/** Pieces of a text. Words that count devices lead to their list. */
export function Pieces({
  pieces,
  show = (text) => text,
}: {
  pieces: readonly Piece[]
  /** Draws the text of a piece. */
  show?: (text: string) => ReactNode
}) {
  return pieces.map((piece, index) =>
    typeof piece === 'string' ? (
      <span key={index}>{show(piece)}</span>
    ) : 'english' in piece ? (
      <English key={index}>{show(piece.english)}</English>
    ) : (
      <Link key={index} to="/devices" search={{ decision: piece.decision }}>
        {piece.text}
      </Link>
    ),
  )
}

/** A reason as phrases; in English as the gateway wrote it. */
export function Said({ english, phrases }: { english: string; phrases: readonly Phrase[] }) {
  const { server } = useText()
  if (server === null || phrases.length === 0) return <English>{english}</English>
  return <Pieces pieces={piecesOfAll(phrases, server, '; ')} />
}

/** The reasons of a check, and what helps. */
export function CheckReason({
  message,
  remedy,
  findings,
}: {
  message: string
  remedy?: string | null
  findings?: readonly Finding[]
}) {
  const text = useText()
  if (text.server === null || !findings || findings.length === 0)
    return (
      <>
        <English>{message}</English>
        {remedy ? (
          <>
            . {text.overview.subsystems.remedy} <English>{remedy}</English>
          </>
        ) : null}
      </>
    )
  const remedies = remedyPieces(findings, text.server)
  return (
    <>
      <Pieces pieces={findingPieces(findings, text.server)} />
      {remedies.length > 0 ? (
        <>
          . {text.overview.subsystems.remedy} <Pieces pieces={remedies} />
        </>
      ) : null}
    </>
  )
}
