// Files of VPN providers: their kind, and what is in them with the keys hidden.

export type VpnKind = 'wireguard' | 'openvpn'

export interface VpnFile {
  kind: VpnKind
  lines: { text: string; hidden: boolean }[]
  /** The file asks for a user name and a password. */
  needsLogin: boolean
}

const SECRET_KEYS = ['privatekey', 'presharedkey']
const SECRET_BLOCKS = ['key', 'tls-auth', 'tls-crypt', 'tls-crypt-v2', 'secret', 'pkcs12', 'auth-user-pass']

export function readVpnFile(content: string): VpnFile | null {
  const lines = content.split(/\r?\n/).map((line) => line.trim())
  if (/^\s*\[interface\]\s*$/im.test(content)) return wireguard(lines)
  if (lines.some((line) => /^(client|remote|dev|<ca>)(\s|$)/i.test(line))) return openvpn(lines)
  return null
}

function wireguard(lines: string[]): VpnFile {
  return {
    kind: 'wireguard',
    needsLogin: false,
    lines: lines
      .filter((line) => line !== '' && !line.startsWith('#') && !line.startsWith(';'))
      .map((line) => {
        const [key] = line.split('=')
        const name = key?.trim() ?? ''
        return SECRET_KEYS.includes(name.toLowerCase())
          ? { text: `${name} =`, hidden: true }
          : { text: line, hidden: false }
      }),
  }
}

function openvpn(lines: string[]): VpnFile {
  const shown: VpnFile['lines'] = []
  let block: string | null = null
  for (const line of lines) {
    const opened = /^<([a-z0-9-]+)>$/i.exec(line)?.[1]
    if (block !== null) {
      if (line.toLowerCase() === `</${block}>`) block = null
      continue
    }
    if (opened) {
      block = opened.toLowerCase()
      shown.push({ text: `<${block}>`, hidden: SECRET_BLOCKS.includes(block) })
    } else if (line !== '' && !line.startsWith('#') && !line.startsWith(';'))
      shown.push({ text: line, hidden: false })
  }
  return {
    kind: 'openvpn',
    lines: shown,
    needsLogin: lines.some((line) => /^auth-user-pass(\s|$)/i.test(line)),
  }
}

/** The name of a tunnel from that of its file. */
export function tunnelName(file: string): string {
  return file
    .replace(/\.(conf|ovpn|txt)$/i, '')
    .replace(/[^a-z0-9._-]+/gi, '-')
    .replace(/^-+|-+$/g, '')
    .toLowerCase()
    .slice(0, 32)
}
