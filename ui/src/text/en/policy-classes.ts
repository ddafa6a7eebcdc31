import type { Schemas } from '@/api/client'

const count = (n: number, one: string, many: string) => `${n} ${n === 1 ? one : many}`

/** Texts of privacy classes. */
export const policyClasses = {
  classQuestion: 'What does each class enforce?',
  classAnswer: (n: number, closed: number) =>
    `${count(n, 'privacy class', 'privacy classes')}; ${closed === 0 ? 'none demands' : `${closed} ${closed === 1 ? 'demands' : 'demand'}`} a stricter failure policy than fail-open.`,
  classes: 'Privacy classes',
  classesHint: 'Policies fail at least as strictly as the floor of the class.',
  newClass: 'Privacy class',
  createClass: 'New privacy class',
  builtin: 'built-in',
  floor: 'Floor',
  floorLabel: 'Policies fail at least',
  floorHint: 'For policies of the class and for all traffic of its devices. fail-open demands nothing.',
  dnsMode: 'Resolver of the devices',
  classDnsModes: {
    off: 'the one that the device chooses',
    device: 'the gateway',
    system: 'the gateway only, encrypted ones are blocked',
  } satisfies Record<Schemas['ClassDnsMode'], string>,
  blocks: 'Enforces',
  switches: {
    force_dns: 'Force DNS to the gateway',
    force_ntp: 'Force NTP to the gateway',
    block_doh: 'Block DNS over HTTPS',
    block_dot: 'Block DNS over TLS',
    block_quic: 'Block QUIC',
    block_ipv6: 'Block IPv6',
    allow_exceptions: 'Allow exceptions',
  },
  switchShort: {
    force_dns: 'DNS forced',
    force_ntp: 'NTP forced',
    block_doh: 'no DoH',
    block_dot: 'no DoT',
    block_quic: 'no QUIC',
    block_ipv6: 'no IPv6',
  },
  webrtc: 'WebRTC (STUN)',
  webrtcs: { off: 'not touched', tunnel: 'by the policy of the device', block: 'blocked' } as Record<
    string,
    string
  >,
  ech: 'Encrypted ClientHello keys',
  echs: { allow: 'passed on', strip: 'removed' } satisfies Record<Schemas['Ech'], string>,
  queryLog: 'Query log',
  queryLogs: { full: 'full', anonymous: 'without the device', off: 'off' } satisfies Record<
    Schemas['QueryLog'],
    string
  >,
  telemetryLists: 'Block lists for these devices only',
  telemetryHint: 'Names of lists, one each line.',
  exceptionsAllowed: 'Exceptions',
  allowed: 'allowed',
  notAllowed: 'not allowed',
  deleteClass: 'Delete privacy class',
  deleteClassMeans: 'Policies, profiles, devices and groups that name the class lose its protection.',
}
