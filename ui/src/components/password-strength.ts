// A rough estimate of how hard a password is to guess. It is made in the browser; nothing is sent.

/** Characters that the daemon demands. */
export const SHORTEST = 12

/** 0 too short, 1 weak, 2 fair, 3 strong, 4 very strong. */
export type Strength = 0 | 1 | 2 | 3 | 4

export function strengthOf(password: string): Strength {
  const characters = [...password]
  if (characters.length < SHORTEST) return 0
  const bits = effectiveLength(characters) * Math.log2(poolOf(password))
  if (bits < 45) return 1
  if (bits < 65) return 2
  if (bits < 90) return 3
  return 4
}

function poolOf(password: string): number {
  let pool = 0
  if (/[a-z]/.test(password)) pool += 26
  if (/[A-Z]/.test(password)) pool += 26
  if (/\d/.test(password)) pool += 10
  if (/[^a-zA-Z0-9]/.test(password)) pool += 33
  return Math.max(pool, 2)
}

/** Characters that repeat or continue the one before count little. */
function effectiveLength(characters: string[]): number {
  let length = 0
  characters.forEach((character, index) => {
    const before = characters[index - 1]?.codePointAt(0)
    const step = before === undefined ? 9 : Math.abs((character.codePointAt(0) ?? 0) - before)
    length += step <= 1 ? 0.25 : 1
  })
  const distinct = new Set(characters).size
  return Math.min(length, distinct * 2)
}
