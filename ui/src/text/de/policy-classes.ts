import type { policyClasses as enPolicyClasses } from '../en/policy-classes'
import type { Text } from '..'

const zahl = (n: number, eins: string, viele: string) => `${n} ${n === 1 ? eins : viele}`

/** Texts of privacy classes. */
export const policyClasses: Pick<Text['policies'], keyof typeof enPolicyClasses> = {
  classQuestion: 'Was setzt jede Klasse durch?',
  classAnswer: (n, closed) =>
    `${zahl(n, 'Schutzklasse', 'Schutzklassen')}; ${closed === 0 ? 'keine verlangt' : `${closed} ${closed === 1 ? 'verlangt' : 'verlangen'}`} bei Ausfall mehr als fail-open.`,
  classes: 'Schutzklassen',
  classesHint: 'Richtlinien verhalten sich bei Ausfall mindestens so streng, wie die Klasse verlangt.',
  newClass: 'Schutzklasse',
  createClass: 'Neue Schutzklasse',
  builtin: 'eingebaut',
  floor: 'Mindestens',
  floorLabel: 'Bei Ausfall mindestens',
  floorHint: 'Für Richtlinien der Klasse und für allen Verkehr ihrer Geräte. fail-open verlangt nichts.',
  dnsMode: 'Resolver der Geräte',
  classDnsModes: {
    off: 'den das Gerät wählt',
    device: 'das Gateway',
    system: 'nur das Gateway, verschlüsselte sind gesperrt',
  },
  blocks: 'Setzt durch',
  switches: {
    force_dns: 'DNS über das Gateway erzwingen',
    force_ntp: 'NTP über das Gateway erzwingen',
    block_doh: 'DNS über HTTPS sperren',
    block_dot: 'DNS über TLS sperren',
    block_quic: 'QUIC sperren',
    block_ipv6: 'IPv6 sperren',
    allow_exceptions: 'Ausnahmen erlauben',
  },
  switchShort: {
    force_dns: 'DNS erzwungen',
    force_ntp: 'NTP erzwungen',
    block_doh: 'kein DoH',
    block_dot: 'kein DoT',
    block_quic: 'kein QUIC',
    block_ipv6: 'kein IPv6',
  },
  webrtc: 'WebRTC (STUN)',
  webrtcs: { off: 'unberührt', tunnel: 'nach der Richtlinie des Geräts', block: 'gesperrt' },
  ech: 'Schlüssel für Encrypted ClientHello',
  echs: { allow: 'weitergeben', strip: 'entfernen' },
  queryLog: 'Anfragenprotokoll',
  queryLogs: { full: 'vollständig', anonymous: 'ohne das Gerät', off: 'aus' },
  telemetryLists: 'Sperrlisten nur für diese Geräte',
  telemetryHint: 'Namen von Listen, je Zeile einer.',
  exceptionsAllowed: 'Ausnahmen',
  allowed: 'erlaubt',
  notAllowed: 'nicht erlaubt',
  deleteClass: 'Schutzklasse löschen',
  deleteClassMeans: 'Richtlinien, Profile, Geräte und Gruppen mit dieser Klasse verlieren ihren Schutz.',
}
