// What a screen reader says by itself. These two regions alone are live for states that last; they are written when the
// word or the sentence of the verdict changes, and not with each age that counts on beside it.

import { useEffect, useState } from 'react'
import { useGet } from '@/api/query'
import { useText } from '@/text'
import { steadyPart, useVerdict } from '@/components/verdict'
import { verdictText } from '@/components/verdict-text'

/** Time for which a verdict must last before it is said, in milliseconds: a page that comes back reads first. */
const STEADY = 1000

export function Announcer() {
  const { word, state, last } = useVerdict()
  const text = useText()
  const waits = useGet('/status', {}, { every: 3000 }).data?.data.pending_confirm_until != null
  const sentence = last !== undefined && word === last.word ? verdictText(last, text) : ''
  const said = useSteady(`${word}${sentence}`, `${word}${steadyPart(sentence)}`)
  const leak = state === 'leak'
  return (
    <>
      <div className="sr" role="status">
        {leak ? '' : said}
      </div>
      <div className="sr" role="status">
        {waits ? text.shell.confirmWaits : ''}
      </div>
      <div className="sr" role="alert">
        {leak ? said : ''}
      </div>
    </>
  )
}

/** The value as it was when its steady part had lasted for a while. */
function useSteady(value: string, steady: string): string {
  const [said, setSaid] = useState({ value: '', steady: '' })
  useEffect(() => {
    if (steady === said.steady) return
    const timer = window.setTimeout(() => setSaid({ value, steady }), STEADY)
    return () => window.clearTimeout(timer)
    // The part that goes on counting starts no pause of its own.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [steady, said.steady])
  return said.value
}
