import type { Text } from '..'
import { formatNumber } from '../format'

export const devices: Text['devices'] = {
  label: 'Geräte',
  question: 'Wer ist im Netz, und wie geht jedes Gerät hinaus?',
  tabs: {
    devices: 'Geräte',
    groups: 'Gruppen',
    trustClasses: 'Vertrauensklassen',
    why: 'Warum',
    dns: 'DNS-Anfragen',
    exceptions: 'Ausnahmen',
    reservation: 'Reservierung',
  },
  answer: (known, counts) => {
    const direct = counts.direct_by_exception + counts.failed_open + counts.no_policy
    return [
      known === 1 ? '1 Gerät ist bekannt: ' : `${formatNumber(known)} Geräte sind bekannt: `,
      [
        counts.through_policy === 1
          ? '1 geht durch seine Richtlinie hinaus'
          : `${formatNumber(counts.through_policy)} gehen durch ihre Richtlinie hinaus`,
        'tunnel',
      ],
      ', ',
      [
        counts.blocked === 1
          ? '1 ist absichtlich blockiert'
          : `${formatNumber(counts.blocked)} sind absichtlich blockiert`,
        'block',
      ],
      ', ',
      [direct === 1 ? '1 geht direkt hinaus' : `${formatNumber(direct)} gehen direkt hinaus`, 'direct'],
      '.',
    ]
  },
  answerUnknown: (known) =>
    known === 1
      ? '1 Gerät ist bekannt. Wie es hinausgeht, ist gerade nicht bekannt.'
      : `${formatNumber(known)} Geräte sind bekannt. Wie sie hinausgehen, ist gerade nicht bekannt.`,
  add: 'Gerät hinzufügen',
  addSentence:
    'Ein Gerät wird an seiner MAC-Adresse erkannt. Richtlinien, Gruppen und Ausnahmen beziehen sich darauf.',
  empty: 'Noch ist kein Gerät bekannt. Für Geräte ohne Eintrag gelten die Richtlinien ihres Netzes.',
  nothing: 'Zu diesen Filtern passt kein Gerät.',
  clear: 'Filter entfernen',
  shown: (shown, all) => (shown === all ? `${all} gezeigt.` : `${shown} von ${all} gezeigt.`),
  asking: (count) => (count === 1 ? 'Der Weg von 1 wird erfragt.' : `Die Wege von ${count} werden erfragt.`),
  askedFirst: (asked, all) =>
    `Nur die Wege der ersten ${asked} von ${all} werden erfragt. Die anderen Filter grenzen weiter ein.`,
  find: 'Name, Adresse oder Schlagwort',
  status: 'Status',
  anyStatus: 'jeder Status',
  statuses: { known: 'bekannt', new: 'neu', quarantined: 'in Quarantäne', blocked: 'blockiert' },
  statusHints: {
    known: 'Es folgt seinen Richtlinien.',
    new: 'Es wurde zum ersten Mal gesehen, und niemand hat darüber entschieden.',
    quarantined: 'Es erreicht nur, was die Quarantäne erlaubt.',
    blocked: 'Nichts wird für das Gerät weitergeleitet.',
  },
  group: 'Gruppe',
  anyGroup: 'jede Gruppe',
  groups: 'Gruppen',
  trustClass: 'Vertrauensklasse',
  anyClass: 'jede Vertrauensklasse',
  trustClassHint: 'Ohne eigene gilt die der Gruppen, ohne diese „standard“.',
  privacyClass: 'Privatsphäreklasse',
  profile: 'Routenprofil',
  profileHint: 'Für Verkehr, auf den keine Richtlinie zutrifft. Es wirkt sofort.',
  inherited: 'geerbt',
  path: 'Weg jetzt',
  anyPath: 'jeder Weg',
  decisions: {
    tunnel: 'durch einen Hop',
    block: 'blockiert',
    direct: 'direkt',
    protected: 'Hop oder blockiert',
  },
  address: 'Adresse',
  mac: 'MAC-Adresse',
  macs: 'Weitere MAC-Adressen',
  macsHint: 'Eine andere Karte oder eine zufällige Adresse desselben Geräts, durch Kommas getrennt.',
  hostname: 'Hostname',
  vendor: 'Hersteller',
  randomized: 'zufällige MAC',
  firstSeen: 'Zuerst gesehen',
  lastSeen: 'Zuletzt gesehen',
  tags: 'Schlagwörter',
  commas: 'Durch Kommas getrennt.',
  notes: 'Notizen',
  noAnswer: (name) => `Wie ${name} hinausgeht, ist noch nicht bekannt.`,
  remove: 'Dieses Gerät löschen',
  removeTitle: (name) => `${name} löschen?`,
  removeConsequence:
    'Der Eintrag verschwindet. Das Gerät selbst gilt dann als unbekannt: Richtlinien für sein Netz entscheiden, und ohne eine solche geht es direkt hinaus.',
  removeUsed:
    'Der Eintrag verschwindet, und was sich darauf bezieht, verliert ihn. Das Gerät selbst gilt dann als unbekannt: Richtlinien für sein Netz entscheiden, und ohne eine solche geht es direkt hinaus.',
  noExceptions: 'Für dieses Gerät gab es noch keine Ausnahme.',
  endedExceptions: 'Beendete Ausnahmen',
  began: 'Begann',
  ended: 'Endete',
  dns: {
    newest: (count) => `Die neuesten ${count} Anfragen.`,
    empty:
      'Dieses Gerät hat den Resolver des Gateways noch nichts gefragt, oder seine Privatsphäreklasse hält es aus dem Protokoll heraus.',
    time: 'Zeit',
    name: 'Name',
    type: 'Typ',
    status: 'Ergebnis',
    by: 'Durch',
    elapsed: 'Antwortzeit',
  },
  reservation: {
    hint: 'Der DHCP-Server gibt diese Adresse keinem anderen Gerät.',
    forMac: (mac) => `für ${mac}`,
    remove: 'Entfernen',
    removed: 'Die Reservierung ist entfernt.',
    noMac: 'Eine Reservierung braucht eine MAC-Adresse, und dieses Gerät hat keine.',
    reserve: 'Diese Adresse reservieren',
    lease: 'Jetzt vergeben:',
    until: 'bis',
  },
  groupList: {
    question: 'Welche Geräte gehören zusammen?',
    answer: (groups, grouped, all) =>
      `${groups === 1 ? '1 Gruppe' : `${groups} Gruppen`} mit ${grouped}${all === null ? '' : ` von ${all}`} Geräten.`,
    add: 'Gruppe hinzufügen',
    addSentence: 'Richtlinien können für eine Gruppe gelten, und Mitglieder erben ihre Klassen.',
    empty: 'Es gibt noch keine Gruppe. Richtlinien können statt für einzelne Geräte für eine Gruppe gelten.',
    members: 'Mitglieder',
    color: 'Farbe',
    questionOf: (name) => `Was gehört zu ${name}?`,
    answerOf: (count) => (count === 1 ? '1 Gerät ist Mitglied.' : `${count} Geräte sind Mitglieder.`),
    remove: 'Diese Gruppe löschen',
    removeTitle: (name) => `${name} löschen?`,
    removeConsequence:
      'Die Gruppe verschwindet, ihre Mitglieder bleiben. Richtlinien für die Gruppe treffen auf sie nicht mehr zu, also gehen sie vielleicht anders hinaus.',
  },
  classList: {
    question: 'Was darf jede Art von Gerät erreichen?',
    answer: (count) => (count === 1 ? '1 Vertrauensklasse.' : `${count} Vertrauensklassen.`),
    add: 'Vertrauensklasse hinzufügen',
    builtin: 'mitgeliefert',
    builtinHint: 'Eine mitgelieferte Klasse behält ihren Namen.',
    level: 'Stufe',
    levelHint: '0 für kein Vertrauen, 100 für volles.',
    lan: 'Lokales Netz',
    lanValues: { none: 'kein anderes Gerät', segment: 'das eigene Segment', full: 'alles' },
    internet: 'Internet',
    internetValues: {
      none: 'keines',
      policy: 'nur durch eine Richtlinie',
      direct: 'durch eine Richtlinie, sonst direkt',
    },
    internetHints: {
      none: 'Nichts wird ins Internet weitergeleitet.',
      policy: 'Ohne zutreffende Richtlinie ist das Gerät blockiert.',
      direct: 'Ohne zutreffende Richtlinie geht das Gerät direkt hinaus.',
    },
    admin: 'Darf das Gateway verwalten',
    adminHint: 'Öffnet API, Oberfläche und SSH. Wirkt, sobald ein Gerät eine Klasse hat, die das darf.',
    dnsLocal: 'Darf lokale Namen auflösen',
    dnsLocalHint: 'Namen von Hosts, lokale Zonen und private Adressen.',
    mdns: 'Darf mDNS anderer Segmente nutzen',
    mdnsHint: 'Noch leitet nichts mDNS zwischen Segmenten weiter.',
    questionOf: (name) => `Was dürfen Geräte von ${name} erreichen?`,
    answerOf: (lan, internet) => `Lokales Netz: ${lan}. Internet: ${internet}.`,
    remove: 'Diese Vertrauensklasse löschen',
    removeTitle: (name) => `${name} löschen?`,
    removeConsequence:
      'Die Klasse verschwindet. Geräte und Gruppen, die sie nennen, brauchen zuvor eine andere.',
  },
}
