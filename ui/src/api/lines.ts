// Answers of the API that come line by line, as JSON.

import { readError, Unreachable } from './errors'

/** Reads lines as they come, until the answer ends or is aborted. Each part of it that arrives is taken at once. */
export async function readLines(
  path: string,
  signal: AbortSignal,
  take: (lines: unknown[]) => void,
): Promise<void> {
  const response = await fetch(path, { signal }).catch((error: unknown) => {
    if (signal.aborted) throw error
    throw new Unreachable()
  })
  if (!response.ok || !response.body) throw readError(response, await response.json().catch(() => undefined))
  const reader = response.body.getReader()
  const decoder = new TextDecoder()
  let rest = ''
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    const lines = (rest + decoder.decode(value, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    if (lines.length > 0) take(lines.map((line): unknown => JSON.parse(line)))
  }
}
