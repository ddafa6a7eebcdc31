// A list that is typed as lines of a text area.

import { useMemo, useState } from 'react'

/** Lines of a text area as a list, and back. */
export function useLines(value: readonly string[], set: (value: string[]) => void) {
  const joined = useMemo(() => value.join('\n'), [value])
  const [typed, setTyped] = useState(joined)
  return {
    value: linesOf(typed).join('\n') === joined ? typed : joined,
    onChange: (next: string) => {
      setTyped(next)
      set(linesOf(next))
    },
  }
}

export function linesOf(text: string): string[] {
  return text
    .split(/[\n,]+/)
    .map((line) => line.trim())
    .filter((line) => line !== '')
}
