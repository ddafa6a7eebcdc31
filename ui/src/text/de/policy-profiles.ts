import type { policyProfiles as enPolicyProfiles } from '../en/policy-profiles'
import type { Text } from '..'

const zahl = (n: number, eins: string, viele: string) => `${n} ${n === 1 ? eins : viele}`

/** Texts of profiles and chains. */
export const policyProfiles: Pick<Text['policies'], keyof typeof enPolicyProfiles> = {
  profileQuestion: 'Welche Pfade stehen bereit?',
  profileAnswer: (profiles, chains) =>
    `${zahl(profiles, 'Profil', 'Profile')} und ${zahl(chains, 'Kette', 'Ketten')} für Richtlinien, Geräte und Gruppen.`,
  profiles: 'Profile',
  profilesHint:
    'Hops mit ihrem Verhalten bei Ausfall und ihrem DNS, für mehrere Richtlinien, Geräte und Gruppen.',
  profilesEmpty:
    'Ein Profil ist eine Liste von Hops, die sich mehrere Richtlinien, Geräte und Gruppen teilen.',
  newProfile: 'Profil',
  createProfile: 'Neues Profil',
  chains: 'Ketten',
  chainsHint: 'Zwei bis vier Hops, jeder wird über den vorigen erreicht.',
  chainsEmpty: 'Eine Kette ist ein benannter Pfad aus zwei bis vier Hops, der Eingang zuerst.',
  newChain: 'Kette',
  createChain: 'Neue Kette',
  dns: 'DNS',
  dnsModes: {
    inherit: 'wie für alles andere',
    tunnel: 'Nameserver des Tunnels',
    custom: 'eigene Upstreams',
  },
  upstreams: 'Upstreams',
  upstreamsHint: 'Je Zeile einer: eine Adresse, ein Name oder eine https://-Adresse.',
  mtu: 'MTU',
  mtuHint: 'Bytes eines Pakets. Leer: wie die Hops es brauchen.',
  status: 'Zustand',
  chainStatus: {
    up: 'Verbunden',
    down: 'Ausgefallen',
    degraded: 'Eingeschränkt',
    disabled: 'Ausgeschaltet',
    unknown: 'Unbekannt',
  },
  effectiveMtu: 'Wirksame MTU',
  deleteProfileMeans: 'Was dieses Profil nennt, verliert seine Hops: dann gilt das Verhalten bei Ausfall.',
  deleteChainMeans: 'Was diese Kette nennt, verliert seine Hops: dann gilt das Verhalten bei Ausfall.',
  deleteProfile: 'Profil löschen',
  deleteChain: 'Kette löschen',
}
