// The program of a session, from what it says of itself.

const BROWSERS: [name: string, pattern: RegExp][] = [
  ['Edge', /Edg\/(\d+)/],
  ['Opera', /OPR\/(\d+)/],
  ['Firefox', /Firefox\/(\d+)/],
  ['Chrome', /(?:Headless)?Chrome\/(\d+)/],
  ['Safari', /Version\/(\d+).*Safari/],
]
const SYSTEMS: [name: string, pattern: RegExp][] = [
  ['Android', /Android/],
  ['iOS', /iPhone|iPad/],
  ['Windows', /Windows/],
  ['macOS', /Mac OS X/],
  ['Linux', /Linux/],
]

/** `Firefox 140, Linux`. What is not known stays as it is. */
export function programOf(agent: string): string {
  const browser = BROWSERS.find(([, pattern]) => pattern.test(agent))
  if (!browser) return agent
  const version = browser[1].exec(agent)?.[1]
  const system = SYSTEMS.find(([, pattern]) => pattern.test(agent))?.[0]
  return `${browser[0]} ${version ?? ''}${system ? `, ${system}` : ''}`
}
