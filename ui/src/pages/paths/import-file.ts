// A tunnel file as it was dropped: what is in it, without its secrets. The daemon has the last word when it imports it.

export type FileKind = 'wireguard' | 'openvpn'

export interface ParsedPeer {
  publicKey: string
  endpoint: string | null
  allowedIps: string[]
  keepalive: number | null
  hasPresharedKey: boolean
}

export type Problem =
  | { code: 'no_private_key' }
  | { code: 'no_address' }
  | { code: 'no_peer' }
  | { code: 'no_remote' }
  | { code: 'no_endpoint' }
  | { code: 'needs_password' }
  | { code: 'needs_passphrase' }
  | { code: 'not_inline'; directive: string }

export interface ParsedFile {
  kind: FileKind
  addresses: string[]
  dns: string[]
  mtu: number | null
  hasPrivateKey: boolean
  peers: ParsedPeer[]
  /** OpenVPN: servers as `host port protocol`. */
  remotes: string[]
  cipher: string | null
  needsPassword: boolean
  /** Directives that the gateway does not use: hooks, routes, name servers that the file sets. */
  ignored: string[]
  problems: Problem[]
  /** The text of the file with `***` in place of its secrets. */
  masked: string
}

/** The kind of a file by its text; `null` if it is neither. */
export function kindOf(text: string): FileKind | null {
  if (/^\s*\[(interface|peer)\]\s*$/im.test(text)) return 'wireguard'
  if (/^\s*(remote\s+\S+|client\s*$|<ca>)/im.test(text)) return 'openvpn'
  return null
}

export function parseFile(text: string): ParsedFile | null {
  const kind = kindOf(text)
  if (kind === null) return null
  return kind === 'wireguard' ? parseWireguard(text) : parseOpenvpn(text)
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

const WIREGUARD_IGNORED = ['table', 'preup', 'postup', 'predown', 'postdown', 'saveconfig', 'fwmark']

function parseWireguard(text: string): ParsedFile {
  const file = empty('wireguard')
  let section = ''
  let peer: ParsedPeer | null = null
  const masked = text.split(/\r?\n/).map((raw) => {
    const line = raw.replace(/[#;].*$/, '').trim()
    const heading = /^\[(\w+)\]$/.exec(line)
    if (heading) {
      section = (heading[1] ?? '').toLowerCase()
      if (section === 'peer') {
        peer = { publicKey: '', endpoint: null, allowedIps: [], keepalive: null, hasPresharedKey: false }
        file.peers.push(peer)
      }
      return raw
    }
    const setting = /^(\w+)\s*=\s*(.*)$/.exec(line)
    // A comment may hold a key that was replaced.
    if (!setting) return raw.replace(/((?:private|preshared)key\s*=\s*)\S+/i, '$1***')
    const key = (setting[1] ?? '').toLowerCase()
    const value = setting[2] ?? ''
    if (WIREGUARD_IGNORED.includes(key)) file.ignored.push(setting[1] ?? '')
    if (section === 'interface') {
      if (key === 'privatekey') file.hasPrivateKey = value !== ''
      if (key === 'address') file.addresses.push(...list(value))
      if (key === 'dns') file.dns.push(...list(value))
      if (key === 'mtu') file.mtu = number(value)
    } else if (peer) {
      if (key === 'publickey') peer.publicKey = value
      if (key === 'presharedkey') peer.hasPresharedKey = value !== ''
      if (key === 'endpoint') peer.endpoint = value
      if (key === 'allowedips') peer.allowedIps.push(...list(value))
      if (key === 'persistentkeepalive') peer.keepalive = number(value)
    }
    return key === 'privatekey' || key === 'presharedkey' ? `${setting[1]} = ***` : raw
  })
  if (!file.hasPrivateKey) file.problems.push({ code: 'no_private_key' })
  if (file.addresses.length === 0) file.problems.push({ code: 'no_address' })
  if (file.peers.length === 0) file.problems.push({ code: 'no_peer' })
  else if (file.peers.every((each) => each.endpoint === null)) file.problems.push({ code: 'no_endpoint' })
  return { ...file, masked: masked.join('\n') }
}

const OPENVPN_IGNORED =
  /^(up|down|ipchange|route-up|route-pre-down|client-connect|auth-user-pass-verify|tls-verify|plugin|script-security|route|route-ipv6|redirect-gateway|dhcp-option|register-dns|block-outside-dns)$/
/** Directives whose argument is a file, unless the file is inline. */
const OPENVPN_FILES = /^(ca|cert|key|tls-auth|tls-crypt|tls-crypt-v2|pkcs12|secret)$/
const OPENVPN_SECRETS = /^(key|tls-auth|tls-crypt|tls-crypt-v2|pkcs12|secret|auth-user-pass)$/

function parseOpenvpn(text: string): ParsedFile {
  const file = empty('openvpn')
  let block: string | null = null
  const protocol = /^\s*proto\s+(\S+)/im.exec(text)?.[1]
  const port = /^\s*port\s+(\d+)/im.exec(text)?.[1] ?? '1194'
  const masked: string[] = []
  for (const raw of text.split(/\r?\n/)) {
    const line = raw.trim()
    if (block !== null) {
      if (line === `</${block}>`) {
        block = null
        masked.push(raw)
      } else {
        if (/ENCRYPTED/.test(line) && block === 'key') file.problems.push({ code: 'needs_passphrase' })
        if (!OPENVPN_SECRETS.test(block)) masked.push(raw)
        else if (masked.at(-1) !== '***') masked.push('***')
      }
      continue
    }
    const opening = /^<([\w-]+)>$/.exec(line)
    if (opening) {
      block = opening[1] ?? ''
      if (block === 'key') file.hasPrivateKey = true
      masked.push(raw)
      continue
    }
    masked.push(raw)
    if (/^[#;]/.test(line)) continue
    const [directive = '', ...rest] = line.split(/\s+/)
    const [first] = rest
    if (directive === 'remote' && first)
      file.remotes.push([first, rest[1] ?? port, rest[2] ?? protocol ?? 'udp'].join(' '))
    if (directive === 'data-ciphers' || (directive === 'cipher' && file.cipher === null))
      file.cipher = first?.split(':')[0] ?? null
    if (directive === 'tun-mtu' && first) file.mtu = number(first)
    if (directive === 'auth-user-pass') {
      file.needsPassword = !text.includes('<auth-user-pass>')
      if (first) file.problems.push({ code: 'not_inline', directive })
      else if (file.needsPassword) file.problems.push({ code: 'needs_password' })
    }
    if (OPENVPN_FILES.test(directive) && first && first !== '[inline]')
      file.problems.push({ code: 'not_inline', directive })
    if (OPENVPN_IGNORED.test(directive) && !file.ignored.includes(directive)) file.ignored.push(directive)
  }
  if (file.remotes.length === 0) file.problems.push({ code: 'no_remote' })
  return { ...file, masked: masked.join('\n') }
}

function empty(kind: FileKind): ParsedFile {
  return {
    kind,
    addresses: [],
    dns: [],
    mtu: null,
    hasPrivateKey: false,
    peers: [],
    remotes: [],
    cipher: null,
    needsPassword: false,
    ignored: [],
    problems: [],
    masked: '',
  }
}

function list(value: string): string[] {
  return value
    .split(',')
    .map((each) => each.trim())
    .filter(Boolean)
}

function number(value: string): number | null {
  const parsed = Number(value)
  return Number.isFinite(parsed) && value.trim() !== '' ? parsed : null
}
