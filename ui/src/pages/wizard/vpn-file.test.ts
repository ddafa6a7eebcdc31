import { describe, expect, it } from 'vitest'
import { readVpnFile, tunnelName } from './vpn-file'

const CONF = `[Interface]
# a comment
PrivateKey = c2VjcmV0c2VjcmV0
Address = 10.0.0.2/32

[Peer]
PublicKey = cHVibGlj
PresharedKey=c2hhcmVk
Endpoint = 198.51.100.7:51820
`

const OVPN = `client
dev tun
remote vpn.example 1194
auth-user-pass
<ca>
PUBLIC
</ca>
<key>
SECRETLINE
</key>
`

describe('files of VPN providers', () => {
  it('show no key of WireGuard', () => {
    const file = readVpnFile(CONF)
    expect(file?.kind).toBe('wireguard')
    const text = JSON.stringify(file)
    expect(text).not.toContain('c2VjcmV0')
    expect(text).not.toContain('c2hhcmVk')
    expect(text).toContain('198.51.100.7:51820')
  })
  it('show no block of OpenVPN', () => {
    const file = readVpnFile(OVPN)
    expect(file?.kind).toBe('openvpn')
    expect(file?.needsLogin).toBe(true)
    expect(JSON.stringify(file)).not.toContain('SECRETLINE')
    expect(file?.lines.find((line) => line.text === '<key>')?.hidden).toBe(true)
  })
  it('are nothing else', () => {
    expect(readVpnFile('hello')).toBeNull()
    expect(readVpnFile('')).toBeNull()
  })
  it('name the tunnel', () => {
    expect(tunnelName('My VPN (Berlin).conf')).toBe('my-vpn-berlin')
    expect(tunnelName('wg-a.ovpn')).toBe('wg-a')
  })
})
