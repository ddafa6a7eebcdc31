// Files of VPN providers: which kind one is, and what a tunnel of it is named. The daemon reads what is in them.

export type FileKind = 'wireguard' | 'openvpn'

/** The kind of a file by its text; `null` if it is neither. */
export function kindOf(text: string): FileKind | null {
  if (/^\s*\[(interface|peer)\]\s*$/im.test(text)) return 'wireguard'
  if (/^\s*(remote\s+\S+|client\s*$|<ca>)/im.test(text)) return 'openvpn'
  return null
}

/** A name that the daemon takes, from the name of a file. */
export function nameFromFile(file: string): string {
  return file
    .replace(/\.[a-z0-9]+$/i, '')
    .toLowerCase()
    .replace(/[^a-z0-9_-]+/g, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, 32)
}

/** The name, or one that begins with it and is not taken. */
export function freeName(name: string, taken: readonly string[]): string {
  if (!taken.includes(name)) return name
  for (let number = 2; ; number += 1) {
    const next = `${name.slice(0, 32 - `-${number}`.length)}-${number}`
    if (!taken.includes(next)) return next
  }
}
