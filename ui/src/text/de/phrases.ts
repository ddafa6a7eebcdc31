// Phrases of the gateway: the verdict, and the reasons of decisions.

import {
  findingPieces,
  joined,
  piecesOf,
  type Params,
  type Phrase,
  type PhraseText,
  type Piece,
  type ServerTexts,
} from '../phrase'
import { checks } from './checks'
import { functions } from './functions'

const count = (n: number, one: string, several: string) => `${n} ${n === 1 ? one : several}`
const hosts = (n: number) => count(n, 'Host', 'Hosts')
const packets = (n: number) => count(n, 'Paket', 'Pakete')

const KINDS: Record<string, string> = {
  vpn: 'Tunnel',
  interface: 'Uplink',
  proxy: 'Proxy',
  mesh_peer: 'Mesh-Peer',
}

const CONTENTS: Record<string, string> = {
  stun: 'STUN',
  quic: 'QUIC',
  resolver_name: 'TLS oder QUIC zum Namen eines öffentlichen Resolvers',
}

const DENIED: Record<string, string> = {
  trust_lan_denied: 'hält ihn von anderen Netzen des LAN fern',
  trust_internet_denied: 'hält ihn vom Internet fern',
  no_policy_reject: 'lässt ihn nur nach Richtlinien hinaus',
  admin_denied: 'lässt ihn das Gateway nicht verwalten',
}

const hop = (p: Params) => `${KINDS[p.text('kind')] ?? p.text('kind')} ${p.text('target')}`

/** English of the gateway in brackets. */
const because = (p: Params): Piece[] => (p.has('reason') ? [' (', { english: p.text('reason') }, ')'] : [])

const open = (p: Params): Piece[] => (p.is('fails_open') ? [', und die Richtlinie ist fail-open'] : [])

const all = (phrases: readonly Phrase[], between = ', '): Piece[] =>
  joined(
    phrases.map((phrase) => piecesOf(phrase, server)),
    between,
  )

const time = (p: Params, name: string) => new Date(p.text(name)).toLocaleString('de-DE')

const unknown = 'UNKNOWN: ob etwas entweicht, ist nicht bekannt'

const phrases: Record<Phrase['code'], PhraseText> = {
  ok: () => ['OK, nichts entweicht.'],
  ok_partly: (p) => [
    `OK für ${p.number('covered')} von ${hosts(p.number('total'))}; `,
    {
      text: count(p.number('uncovered'), 'geht direkt hinaus', 'gehen direkt hinaus'),
      decision: 'no_policy',
    },
    p.number('uncovered') === 1 ? ', für ihn gilt keine Richtlinie.' : ', für sie gilt keine Richtlinie.',
  ],
  blocked: () => ['BLOCKED, nichts entweicht.'],
  leak: (p) => [
    `LEAK: ${packets(p.number('packets'))} ${p.number('packets') === 1 ? 'ging' : 'gingen'} am Wächter vorbei hinaus.`,
  ],
  unknown: (p) => [`${unknown}: `, { english: p.texts('reasons').join('; ') }, '.'],
  no_host_seen: () => [`${unknown}: im LAN wurde noch kein Host gesehen.`],
  not_checked: () => [`${unknown}: es wurde noch nichts geprüft.`],
  check_too_old: (p) => [`${unknown}: die letzte Prüfung war vor ${p.number('seconds')} s.`],
  through_policy: (p) => [
    {
      text: `${count(p.number('hosts'), 'geschützter Host geht', 'geschützte Hosts gehen')} durch ${p.number('hosts') === 1 ? 'seine' : 'ihre'} Richtlinie hinaus`,
      decision: 'protected',
    },
    '.',
  ],
  some_blocked: (p) => [
    'Von ',
    { text: count(p.number('protected'), 'geschützten Host', 'geschützten Hosts'), decision: 'protected' },
    ' ',
    {
      text: `${p.number('through_policy') === 1 ? 'geht' : 'gehen'} ${p.number('through_policy')} durch die Richtlinie hinaus`,
      decision: 'through_policy',
    },
    ', ',
    {
      text: `${p.number('blocked')} ${p.number('blocked') === 1 ? 'ist' : 'sind'} mit Absicht abgeschnitten`,
      decision: 'block',
    },
    ': ',
    ...all(p.phrases('cause_phrases'), '; '),
    p.number('more_causes') > 0 ? ', und andere Gründe.' : '.',
  ],
  direct: (p) => {
    const parts: Piece[][] = []
    const add = (name: string, words: string) => {
      if (p.number(name) > 0) parts.push([{ text: `${p.number(name)} ${words}`, decision: name }])
    }
    add('direct_by_exception', 'durch eine Ausnahme')
    add('failed_open', 'weil die Richtlinie fail-open ist')
    add('no_policy', 'ohne Richtlinie')
    return [
      {
        text: count(p.number('direct'), 'Host geht direkt hinaus', 'Hosts gehen direkt hinaus'),
        decision: 'direct',
      },
      ': ',
      ...joined(parts, ', '),
      '.',
    ]
  },
  leaked_earlier: (p) => [
    `Früher ${p.number('packets') === 1 ? 'ging' : 'gingen'} ${packets(p.number('packets'))} am Wächter vorbei hinaus.`,
  ],
  records_silent: (p) => [
    `${count(p.number('devices'), 'Gerät wurde', 'Geräte wurden')} in den letzten 24 Stunden nicht gesehen.`,
  ],
  function_failed: (p) => [...functionOf(p), ' funktioniert nicht', ...reasonOf(p), '.'],
  function_degraded: (p) => [...functionOf(p), ' funktioniert nur eingeschränkt', ...reasonOf(p), '.'],
  checked: (p) => [`Geprüft vor ${p.number('seconds')} s.`],

  policy_matched: (p) => [
    `die Richtlinie „${p.text('name')}“ (Priorität ${p.text('priority')}, ${p.text('fail_policy')}) trifft zu`,
  ],
  exception_holds: (p) => [`die Ausnahme „${p.text('name')}“ gilt bis ${time(p, 'until')}`],
  exception_direct: () => ['das Gerät geht an seinen Richtlinien vorbei über die Standardroute hinaus'],
  quarantine: (p) => [
    `eine Ausnahme hält das Gerät in Quarantäne${p.has('until') ? ` bis ${time(p, 'until')}` : ''}`,
  ],
  unknown_host_lan: () => [
    'er ist kein bekanntes Gerät, und die Einstellung network.unknown_hosts hält ihn von anderen Netzen des LAN fern',
  ],
  unknown_host_internet: () => [
    'er ist kein bekanntes Gerät, und die Einstellung network.unknown_hosts hält ihn vom Internet fern',
  ],
  guest_network: (p) => [`das Gastnetz ${DENIED[p.text('denied')] ?? 'verbietet es ihm'}`],
  segment_class: (p) => [
    `die Vertrauensklasse des Segments „${p.text('segment')}“ ${DENIED[p.text('denied')] ?? 'verbietet es ihm'}`,
  ],
  hop_down: (p) => [
    `${hop(p)} ist ${p.text('state') === 'down' ? 'ausgefallen' : 'nicht verfügbar'}`,
    ...because(p),
  ],
  hops_down: (p) => {
    const hops = p.phrases('hops')
    if (hops.length === 0) return ['Hops sind ausgefallen']
    const none = p.is('none_usable')
    const head = !none ? '' : hops.length === 1 ? 'der einzige Hop: ' : 'kein Hop ist nutzbar: '
    return [...(head ? [head] : []), ...all(hops), ...open(p)]
  },
  no_hops: (p) => ['sie hat keine Hops', ...open(p)],
  no_family: (p) => [`${p.texts('hops').join(', ')} hat keinen Weg für ${p.text('family')}`, ...open(p)],
  no_hop_for_host: (p) => [`die Richtlinie ${p.text('policy')} hat keinen Hop dafür`],
  not_for_proxy: (p) => [
    `der Proxy ${p.text('proxy')} nimmt ${p.has('protocol') ? p.text('protocol') : 'dieses Protokoll'} nicht an`,
    ...open(p),
  ],
  below_floor: (p) => {
    const failure = p.phrase('failure')
    return [
      ...(failure ? [...piecesOf(failure, server), ', aber '] : []),
      'die Privatsphärenklassen des Geräts verlangen ein strengeres Verhalten bei Ausfall',
    ]
  },
  uplinks_disabled: () => ['alle Uplinks sind ausgeschaltet'],
  egress_unreachable: (p) => [`${hop(p)} ist gewählt, aber `, { english: p.text('reason') }],
  content_blocked: (p) => {
    const before = p.phrase('before')
    const contents = p.texts('contents').map((content) => CONTENTS[content] ?? content)
    return [
      ...(before ? [...piecesOf(before, server), '; '] : []),
      `eine Verbindung, die sich als ${contents.join(', ')} erweist, wird blockiert`,
    ]
  },
  doh_name_blocked: () => [
    'DNS über HTTPS ist für es blockiert, und der Name ist der eines öffentlichen Resolvers',
  ],

  only_family: (p) => [`nur ${p.text('family')}`],
  disabled: () => ['sie ist ausgeschaltet'],
  ended: (p) => [`sie endete am ${time(p, 'until')}`],
  nothing_to_match: () => ['sie nennt nichts, worauf sie zutreffen könnte'],
  more_reasons: (p) => [`${p.number('count')} weitere auch nicht`],
  all_traffic: () => ['sie gilt für allen Verkehr'],
  interface_is: (p) => [`es kam durch ${p.text('interface')} herein`],
  interface_is_not: (p) => [
    p.has('entered')
      ? `es kam durch ${p.text('entered')} herein, nicht durch ${p.text('interface')}`
      : `es kam nicht durch ${p.text('interface')} herein`,
  ],
  vlan_is: (p) => [`es gehört zum VLAN ${p.text('vlan')}`],
  vlan_is_not: (p) => [
    p.number('entered') === 0
      ? `es hat kein VLAN-Tag und gehört nicht zum VLAN ${p.text('vlan')}`
      : `es gehört zum VLAN ${p.text('entered')}, nicht zum VLAN ${p.text('vlan')}`,
  ],
  device_is: (p) => [`es kommt vom Gerät ${p.text('device')}`],
  device_is_not: (p) => [`es kommt nicht vom Gerät ${p.text('device')}`],
  group_has: (p) => [`es kommt von ${p.text('device')}, einem Mitglied der Gruppe ${p.text('group')}`],
  group_has_not: (p) => [`es kommt von keinem Mitglied der Gruppe ${p.text('group')}`],
  group_missing: (p) => [`die Gerätegruppe ${p.text('group')} gibt es nicht`],
  source_within: (p) => [`die Quelle ${p.text('address')} liegt in ${p.text('network')}`],
  source_not_within: (p) => [`die Quelle ${p.text('address')} liegt nicht in ${p.text('network')}`],
  destination_within: (p) => [`das Ziel ${p.text('address')} liegt in ${p.text('network')}`],
  destination_not_within: (p) => [`das Ziel ${p.text('address')} liegt nicht in ${p.text('network')}`],
  destination_is: (p) => [`das Ziel ist ${p.text('destination')}`],
  port_is_not: (p) => [`der Zielport ist ${p.text('have')}, nicht ${p.text('port')}`],
  no_port: (p) => [`es hat keinen Port, der ${p.text('port')} sein könnte`],
  name_matches: (p) => [`das Ziel wurde als ${p.text('name')} erfragt, worauf ${p.text('pattern')} zutrifft`],
  name_matches_not: (p) => [
    `das Ziel wurde unter keinem Namen erfragt, auf den ${p.text('pattern')} zutrifft`,
  ],
  no_name: (p) => [
    `das Ziel wurde unter keinem Namen erfragt, auf den ${p.text('pattern')} zutreffen könnte`,
  ],

  not_ip: () => ['es ist kein IP-Paket'],
  malformed: () => ['das Paket ist fehlerhaft'],
  no_plan: () => ['kein Plan ist in Kraft: alles ist blockiert'],
  to_gateway: () => ['das Ziel ist das Gateway selbst'],
  to_lan: () => ['das Ziel liegt im LAN'],
  link_local: () => ['das Ziel ist Multicast, Broadcast oder link-local'],
  to_gateway_denied: () => ['das Ziel ist eine Adresse des Gateways, die Hosts des LAN nicht nutzen dürfen'],
  device_blocked: () => ['das Gerät ist blockiert'],
  trust_lan_denied: (p) => [
    `seine Vertrauensklasse „${p.text('trust_class')}“ hält es von anderen Netzen des LAN fern`,
  ],
  trust_internet_denied: (p) => [
    `seine Vertrauensklasse „${p.text('trust_class')}“ hält es vom Internet fern`,
  ],
  policy_egress: () => ['eine Richtlinie trifft zu'],
  policy_direct: () => ['eine Richtlinie trifft zu'],
  policy_reject: () => ['eine Richtlinie trifft zu'],
  policy_drop: () => ['eine Richtlinie trifft zu'],
  no_policy: () => ['keine Richtlinie trifft zu'],
  no_policy_reject: (p) => [
    `keine Richtlinie trifft zu, und seine Vertrauensklasse „${p.text('trust_class')}“ lässt es nur durch Richtlinien hinaus`,
  ],
  guard_unmarked: () => ['der Wächter hat es gestoppt'],
  guard_wrong_egress: () => ['der Wächter hat es gestoppt'],
  spoofed: () => ['die Quelle ist keine Adresse eines Hosts in diesem LAN'],
  policy_proxy: () => ['eine Richtlinie trifft zu'],
  policy_reset: () => ['der Tunnel der Verbindung nimmt sie nicht mehr an'],
  forced_dns: () => ['es fragt einen Resolver, und der des Gateways antwortet an seiner Stelle'],
  forced_dns_reject: () => [
    'es fragt verschlüsselt einen anderen Resolver, was seine Privatsphäre-Einstellungen nicht erlauben',
  ],
  policy_ended: () => ['die Richtlinie, die zutraf, ist beendet'],
  unknown_interface: () => ['der Plan kennt die Schnittstelle nicht: alles ist blockiert'],
  guard_source: () => ['der Wächter hat es gestoppt'],
  wrong_ingress: () => ['es ist für eine Adresse eines anderen Tunnels'],
  dot_blocked: () => ['DNS über TLS und QUIC zu anderen Resolvern ist für es blockiert'],
  doh_blocked: () => [
    'DNS über HTTPS ist für es blockiert, und die Adresse ist die eines öffentlichen Resolvers',
  ],
  quic_blocked: () => ['QUIC ist für es blockiert'],
  ipv6_blocked: () => ['IPv6 ist für es blockiert'],
  stun_blocked: () => [
    'STUN und TURN sind für es blockiert, oder dürfen nicht über die Standardroute hinaus',
  ],
  discovery_dropped: () => ['Erkennungsprotokolle des LAN verlassen das LAN nicht'],
  forced_ntp: () => ['es fragt einen Zeitserver, und der des Gateways antwortet an seiner Stelle'],
  admin_denied: (p) => [
    `seine Vertrauensklasse „${p.text('trust_class')}“ erlaubt ihm nicht, das Gateway zu verwalten`,
  ],
  floor_reject: () => [
    'seine Richtlinie verhält sich bei Ausfall weniger streng, als die Privatsphärenklassen des Geräts erlauben',
  ],
  quic_held: () => [
    'DNS über HTTPS ist für es blockiert, und QUIC wartet, bis der Name des Servers bekannt ist',
  ],
}

/** The function of a check, by its name. */
function functionOf(p: Params): Piece[] {
  return [functions[p.text('check')] ?? p.text('check')]
}

function reasonOf(p: Params): Piece[] {
  const findings = p.findings('findings')
  if (findings.length > 0) return [': ', ...findingPieces(findings, server)]
  return p.has('message') ? [': ', { english: p.text('message') }] : []
}

export const server: ServerTexts = { phrases, checks }
