import { describe, expect, it } from 'vitest'
import { kindOf, nameFromFile, parseFile } from './import-file'

const SECRET = 'eJx1y6h2YTnXb1mTq0b8g3rJ7mY2qk1lq9Y4m8o0Zk0='

const WIREGUARD = `
# old: PrivateKey = ${SECRET}
[Interface]
PrivateKey = ${SECRET}
Address = 10.2.0.2/32, fd00::2/128
DNS = 10.2.0.1
MTU = 1400
PostUp = iptables -A FORWARD -j ACCEPT

[Peer]
PublicKey = aaaa=
PresharedKey = ${SECRET}
AllowedIPs = 0.0.0.0/0, ::/0
Endpoint = vpn.example.net:51820 # Zürich
PersistentKeepalive = 25
`

const OPENVPN = `client
dev tun
proto tcp
remote a.example.net 443
remote b.example.net
data-ciphers AES-256-GCM:CHACHA20-POLY1305
auth-user-pass
up /etc/openvpn/up.sh
redirect-gateway def1
<ca>
public certificate
</ca>
<key>
-----BEGIN PRIVATE KEY-----
${SECRET}
-----END PRIVATE KEY-----
</key>
`

describe('a WireGuard file', () => {
  const file = parseFile(WIREGUARD)

  it('is read', () => {
    expect(file).toMatchObject({
      kind: 'wireguard',
      addresses: ['10.2.0.2/32', 'fd00::2/128'],
      dns: ['10.2.0.1'],
      mtu: 1400,
      hasPrivateKey: true,
      ignored: ['PostUp'],
      problems: [],
    })
    expect(file?.peers).toEqual([
      {
        publicKey: 'aaaa=',
        endpoint: 'vpn.example.net:51820',
        allowedIps: ['0.0.0.0/0', '::/0'],
        keepalive: 25,
        hasPresharedKey: true,
      },
    ])
  })

  it('is shown without its secrets, those of comments included', () => {
    expect(file?.masked).not.toContain(SECRET)
    expect(file?.masked).toContain('PrivateKey = ***')
    expect(file?.masked).toContain('Endpoint = vpn.example.net:51820')
  })

  it('names what is missing', () => {
    expect(parseFile('[Interface]\nAddress = 10.0.0.2/32\n')?.problems).toEqual([
      { code: 'no_private_key' },
      { code: 'no_peer' },
    ])
  })
})

describe('an OpenVPN file', () => {
  const file = parseFile(OPENVPN)

  it('is read', () => {
    expect(file).toMatchObject({
      kind: 'openvpn',
      remotes: ['a.example.net 443 tcp', 'b.example.net 1194 tcp'],
      cipher: 'AES-256-GCM',
      needsPassword: true,
      ignored: ['up', 'redirect-gateway'],
      problems: [{ code: 'needs_password' }],
    })
  })

  it('is shown without its secrets', () => {
    expect(file?.masked).not.toContain(SECRET)
    expect(file?.masked).toContain('public certificate')
  })

  it('must have its keys inline', () => {
    expect(parseFile('client\nremote a 1194\nca ca.crt\n')?.problems).toEqual([
      { code: 'not_inline', directive: 'ca' },
    ])
  })
})

it('other text is neither', () => {
  expect(kindOf('hello: world')).toBeNull()
  expect(parseFile('')).toBeNull()
})

it('the name of a file becomes a name of a tunnel', () => {
  expect(nameFromFile('Zürich #3 (fast).conf')).toBe('z-rich-3-fast')
  expect(nameFromFile('wg_a.ovpn')).toBe('wg_a')
})
