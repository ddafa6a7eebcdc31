// A tunnel as a form holds it: numbers and lists are text, peers are numbered fields.

import type { Schemas } from '@/api/client'
import { numberOf, textOf, wordsOf, type Values } from '@/components/form'
import { resource } from '@/components/resource'
import { nextNumber, numbersOf, withoutNumber } from '@/components/numbered'

type Tunnel = Schemas['Tunnel']
type TunnelInput = Schemas['TunnelInput']

export const SECRETS = ['private_key', 'password', 'key_passphrase', 'config'] as const

/** Names of the fields of a peer. Their paths in the errors of the daemon are the same. */
export const PEER_FIELDS = [
  'public_key',
  'preshared_key',
  'endpoint',
  'allowed_ips',
  'persistent_keepalive',
] as const

export function peerField(index: number, field: (typeof PEER_FIELDS)[number]): string {
  return `peers[${index}].${field}`
}

/** Numbers of the peers that the form has. */
export function peersOf(values: Values): number[] {
  return numbersOf(values, 'peers')
}

/** The secret fields of all peers, which no draft keeps. */
export function secretsOf(values: Values): string[] {
  return [...SECRETS, ...peersOf(values).map((index) => peerField(index, 'preshared_key'))]
}

export function withPeer(values: Values, peer?: Schemas['Peer']): Values {
  const index = nextNumber(values, 'peers')
  return {
    ...values,
    [peerField(index, 'public_key')]: peer?.public_key ?? '',
    [peerField(index, 'preshared_key')]: '',
    [peerField(index, 'endpoint')]: peer?.endpoint ?? '',
    [peerField(index, 'allowed_ips')]: (peer?.allowed_ips ?? ['0.0.0.0/0', '::/0']).join(', '),
    [peerField(index, 'persistent_keepalive')]: String(peer?.persistent_keepalive ?? ''),
  }
}

export function withoutPeer(values: Values, index: number): Values {
  return withoutNumber(values, 'peers', index)
}

export function formOf(tunnel: Tunnel): Values {
  const check = tunnel.health_check
  let values: Values = {
    name: tunnel.name,
    enabled: tunnel.enabled,
    autostart: tunnel.autostart,
    mtu: String(tunnel.mtu ?? ''),
    dns: tunnel.dns.join(', '),
    uplink: tunnel.uplink,
    keepalive: String(tunnel.keepalive),
    masquerade: tunnel.masquerade,
    weight: String(tunnel.weight),
    bridge: tunnel.bridge ?? '',
    notes: tunnel.notes,
    tags: tunnel.tags.join(', '),
    private_key: '',
    addresses: tunnel.addresses.join(', '),
    listen_port: String(tunnel.listen_port ?? ''),
    config: '',
    username: tunnel.username ?? '',
    password: '',
    key_passphrase: '',
    check_type: check.type,
    check_target: check.target ?? '',
    check_interval: String(check.interval_sec),
    check_timeout: String(check.timeout_sec),
    check_fail: String(check.fail),
    check_success: String(check.success),
    check_liveness: String(check.liveness_sec),
  }
  for (const peer of tunnel.peers) values = withPeer(values, peer)
  return values
}

/** The form of a new WireGuard tunnel, with the defaults of the daemon. */
export function emptyForm(): Values {
  return withPeer({
    name: '',
    enabled: true,
    autostart: true,
    mtu: '',
    dns: '',
    uplink: 'auto',
    keepalive: '25',
    masquerade: true,
    weight: '1',
    bridge: '',
    notes: '',
    tags: '',
    private_key: '',
    addresses: '',
    listen_port: '',
    config: '',
    username: '',
    password: '',
    key_passphrase: '',
    check_type: 'handshake',
    check_target: '',
    check_interval: '30',
    check_timeout: '5',
    check_fail: '3',
    check_success: '2',
    check_liveness: '15',
  })
}

/** What the form changes of a tunnel. A secret that was not typed is left out, so it is kept. */
export function inputOf(values: Values, type: TunnelInput['type']) {
  const secret = (field: string) => {
    const typed = textOf(values[field] ?? '')
    return typed === null ? {} : { [field]: typed }
  }
  return {
    name: String(values.name).trim(),
    type,
    enabled: values.enabled === true,
    autostart: values.autostart === true,
    mtu: numberOf(values.mtu ?? ''),
    dns: wordsOf(values.dns ?? ''),
    uplink: textOf(values.uplink ?? '') ?? 'auto',
    keepalive: numberOf(values.keepalive ?? '') ?? 25,
    masquerade: values.masquerade === true,
    weight: numberOf(values.weight ?? '') ?? 1,
    bridge: textOf(values.bridge ?? ''),
    notes: String(values.notes ?? ''),
    tags: wordsOf(values.tags ?? ''),
    health_check: {
      type: String(values.check_type) as Schemas['HealthCheckTypeInput'],
      target: textOf(values.check_target ?? ''),
      interval_sec: numberOf(values.check_interval ?? '') ?? 30,
      timeout_sec: numberOf(values.check_timeout ?? '') ?? 5,
      fail: numberOf(values.check_fail ?? '') ?? 3,
      success: numberOf(values.check_success ?? '') ?? 2,
      liveness_sec: numberOf(values.check_liveness ?? '') ?? 15,
    },
    ...(type === 'wireguard'
      ? {
          ...secret('private_key'),
          addresses: wordsOf(values.addresses ?? ''),
          listen_port: numberOf(values.listen_port ?? ''),
          peers: peersOf(values).map((index) => peerInput(values, index)),
        }
      : {
          ...secret('config'),
          ...secret('password'),
          ...secret('key_passphrase'),
          username: textOf(values.username ?? ''),
        }),
  }
}

function peerInput(values: Values, index: number): Schemas['PeerInput'] {
  const at = (field: (typeof PEER_FIELDS)[number]) => values[peerField(index, field)] ?? ''
  const preshared = textOf(at('preshared_key'))
  return {
    public_key: String(at('public_key')).trim(),
    ...(preshared === null ? {} : { preshared_key: preshared }),
    endpoint: textOf(at('endpoint')),
    allowed_ips: wordsOf(at('allowed_ips')),
    persistent_keepalive: numberOf(at('persistent_keepalive')),
  }
}

export const allTunnels = resource('/tunnels/{id}', {
  key: 'tunnel',
  type: 'tunnel',
  secrets: secretsOf,
  fields: (tunnel) => (tunnel ? formOf(tunnel) : emptyForm()),
  body: (values, tunnel) => ({ ...tunnel, ...inputOf(values, tunnel?.type ?? 'wireguard') }),
})
