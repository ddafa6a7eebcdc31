import type { Text } from '..'
import { policyExceptions } from './policy-exceptions'
import { policyProfiles } from './policy-profiles'
import { policyClasses } from './policy-classes'
import { policyReview } from './policy-review'
import { formatNumber } from '../format'

const zahl = (n: number, eins: string, viele: string) => `${n} ${n === 1 ? eins : viele}`

export const policies: Text['policies'] = {
  label: 'Richtlinien',
  question: 'Was passiert, wenn das VPN ausfällt?',
  tabs: {
    order: 'Reihenfolge',
    exceptions: 'Ausnahmen',
    profiles: 'Profile',
    classes: 'Schutzklassen',
    presets: 'Vorlagen',
    matrix: 'Leck-Matrix',
    compiled: 'Kompiliert',
  },
  ifAllDrop: (total, blocked, direct) =>
    total === 1
      ? blocked
        ? ['Fallen jetzt alle Tunnel aus, sperrt die einzige Richtlinie: ', blocked, '.']
        : direct
          ? [
              'Fallen jetzt alle Tunnel aus, lässt die einzige Richtlinie Verkehr direkt hinaus: ',
              direct,
              '.',
            ]
          : ['Fallen jetzt alle Tunnel aus, behält die einzige Richtlinie ihren Pfad.']
      : blocked && direct
        ? ['Fallen jetzt alle Tunnel aus, ', blocked, ' und ', direct, '.']
        : blocked
          ? ['Fallen jetzt alle Tunnel aus, ', blocked, '; keine lässt Verkehr hinaus.']
          : direct
            ? ['Fallen jetzt alle Tunnel aus, ', direct, '; keine sperrt.']
            : ['Fallen jetzt alle Tunnel aus, behält jede Richtlinie einen Pfad.'],
  policiesBlock: (n, total) =>
    total === 1
      ? 'ihre Geräte sind abgeschnitten'
      : `${n === 1 ? 'sperrt' : 'sperren'} ${n} von ${total} Richtlinien`,
  letOut: (n, total) =>
    total === 1 ? 'ungeschützt' : `${n === 1 ? 'lässt' : 'lassen'} ${n} Verkehr direkt hinaus`,
  othersRun: (n) => ` ${n === 1 ? 'Die andere behält' : `Die anderen ${n} behalten`} einen Pfad.`,
  pendingMakesIt: (n, names) => [' Mit den ausstehenden Änderungen wären ', n, ' direkt: ', names, '.'],
  pendingNoDirect: ' Ausstehende Änderungen öffnen keinen direkten Pfad.',
  exceptionsDrop: (n) =>
    [
      n.direct > 0
        ? `${zahl(n.direct, 'Ausnahme lässt ihr Gerät', 'Ausnahmen lassen ihre Geräte')} direkt hinaus`
        : '',
      n.some > 0
        ? `${zahl(n.some, 'Ausnahme lässt einen Teil des Verkehrs ihres Geräts', 'Ausnahmen lassen einen Teil des Verkehrs ihrer Geräte')} direkt hinaus`
        : '',
      n.blocked > 0 ? zahl(n.blocked, 'Ausnahme sperrt ihr Gerät', 'Ausnahmen sperren ihre Geräte') : '',
      n.other > 0 ? zahl(n.other, 'Ausnahme behält einen Pfad', 'Ausnahmen behalten einen Pfad') : '',
    ]
      .filter(Boolean)
      .join(', '),
  profilesDrop: (n) =>
    `Wo keine Richtlinie passt: ${[
      n.blocked > 0 ? zahl(n.blocked, 'Profil sperrt', 'Profile sperren') : '',
      n.direct > 0
        ? zahl(n.direct, 'Profil lässt Verkehr direkt hinaus', 'Profile lassen Verkehr direkt hinaus')
        : '',
      n.other > 0 ? zahl(n.other, 'Profil behält einen Pfad', 'Profile behalten einen Pfad') : '',
    ]
      .filter(Boolean)
      .join(', ')}.`,
  noneInForce: 'Keine Richtlinie ist aktiv.',
  noneApplied: 'Keine Richtlinie ist aktiv: Geräte nehmen die Standardroute.',
  noneYet: 'Es gibt noch keine Richtlinie: Geräte nehmen die Standardroute.',
  order: 'Reihenfolge',
  orderHint:
    'Die kleinere Zahl gewinnt, der erste Treffer entscheidet. Alt+Auf und Alt+Ab verschieben eine Zeile.',
  filter: 'Richtlinien filtern',
  onlyWhenDown: { blocked: 'sperrt, wenn alles ausfällt', direct: 'direkt, wenn alles ausfällt' },
  showAll: 'Alle zeigen',
  newPolicy: 'Richtlinie',
  newException: 'Ausnahme',
  empty:
    'Eine Richtlinie sagt, über welche Hops der Verkehr eines Geräts, einer Gruppe oder eines Netzes läuft und was geschieht, wenn sie ausfallen.',
  nothingMatches: 'Keine Richtlinie passt zum Filter.',
  columns: {
    priority: 'Priorität',
    source: 'Richtlinie und Quelle',
    hops: 'Hops',
    fail: 'Bei Ausfall',
    failShort: 'Bei Ausfall',
    now: 'Jetzt',
    carried: 'Übertragen',
  },
  drag: (name) => `${name} ziehen`,
  moveUp: (name) => `${name} nach oben`,
  moveDown: (name) => `${name} nach unten`,
  moreFor: (name) => `Mehr zu ${name}`,
  moveTo: 'An eine Position …',
  moveToTitle: (name) => `${name} verschieben`,
  position: (total) => `Position, 1 bis ${total}`,
  move: 'Verschieben',
  willBe: (changes) =>
    changes.length === 0 ? 'Es ändert sich nichts.' : `Prioritäten: ${changes.join(', ')}.`,
  toTop: 'Ganz nach oben',
  toEnd: 'Ganz nach unten',
  movedTo: (name, place) => `${name} ist an Position ${place} gespeichert, noch nicht aktiv.`,
  notMoved: (name) =>
    `${name} wurde nicht verschoben: das Gateway hat eine andere Reihenfolge. Sie ist so zu sehen, wie sie ist.`,
  moveFailed: (name) => `${name} wurde nicht verschoben. Die Reihenfolge ist wie vorher.`,
  select: 'Auswählen',
  endSelect: 'Fertig',
  selectOne: (name) => `${name} auswählen`,
  selected: (n) => `${n} ausgewählt`,
  blockUp: 'Hoch',
  blockDown: 'Runter',
  enable: 'Einschalten',
  disable: 'Ausschalten',
  duplicate: 'Duplizieren',
  enabledSaved: (name) => `${name} ist eingeschaltet, noch nicht aktiv.`,
  disabledSaved: (name) => `${name} ist ausgeschaltet und bleibt bis zum Anwenden aktiv.`,
  sources: {
    all: 'alles',
    interface: 'Schnittstelle',
    vlan: 'VLAN',
    subnet: 'Subnetz',
    device: 'Gerät',
    device_group: 'Gruppe',
    destination: 'Ziel',
    domain: 'Domain',
  },
  expiresAt: (time) => `endet ${time}`,
  ended: 'beendet',
  noHopsClosed: 'keine Hops: diese Geräte sind abgeschnitten',
  noHopsOpen: 'keine Hops: Standardroute',
  profileHops: (name) => `nach Profil ${name}`,
  chainHops: (name) => `nach Kette ${name}`,
  activeNow: (value) => `jetzt aktiv: ${value}`,
  noSuchHop: 'gibt es nicht',
  failWords: {
    'fail-closed': 'fail-closed',
    'fail-degraded': 'fail-degraded',
    'fail-open': 'fail-open',
  },
  failMeans: {
    'fail-closed': 'sperrt',
    'fail-degraded': 'nimmt die übrigen Hops, nie direkt',
    'fail-open': 'lässt Verkehr direkt hinaus',
  },
  savedNotActive: 'gespeichert, nicht aktiv',
  edited: 'geändert',
  off: 'aus, noch aktiv',
  removed: 'gelöscht, noch aktiv',
  disabled: 'Ausgeschaltet',
  notInKernel: 'Nicht im Kernel',
  noTraffic: 'Kein Verkehr',
  blockedDevices: (n) => (n === null ? 'Gesperrt' : `Gesperrt, ${zahl(n, 'Gerät', 'Geräte')}`),
  directDevices: (n) => (n === null ? 'Direkt' : `Direkt, ${zahl(n, 'Gerät', 'Geräte')}`),
  hopsOf: (name, up, all) => `${name}, ${up} von ${all} Hops`,
  fallback: (n) =>
    n === null ? 'Direkt, Hops ausgefallen' : `Direkt, ${zahl(n, 'Gerät', 'Geräte')}, Hops ausgefallen`,
  conflictKinds: {
    duplicate: (others) => `doppelt zu ${others}`,
    shadowed: (others) => `verdeckt von ${others}`,
    contradictory: (others) => `widerspricht ${others}`,
    unreachable_target: () => 'Ziel gibt es nicht',
    loop: () => 'Tunnel im Kreis',
  },
  form: 'Formular',
  json: 'JSON',
  formOrJson: 'Ansicht',
  create: 'Neue Richtlinie',
  saveNotActive: 'Speichern',
  savedSay: (name) => `${name} ist gespeichert, noch nicht aktiv.`,
  backToOrder: 'Zur Reihenfolge',
  deleteTitle: (name) => `${name} löschen`,
  deleteMeans: (name) =>
    `${name} bleibt bis zum Anwenden aktiv. Danach entscheidet die nächste passende Richtlinie, sonst die Standardroute.`,
  deleteAction: 'Richtlinie löschen',
  answerNow: (name, what) => `${name}: ${what}.`,
  sectionWho: 'Wer und was',
  sectionWhere: 'Wohin',
  sectionFail: 'Wenn Hops ausfallen',
  sectionMore: 'Weiteres',
  priority: 'Priorität',
  priorityHint: 'Die kleinere Zahl gewinnt. 0 bis 1 000 000.',
  sourceType: 'Gilt für',
  sourceTypes: {
    all: 'Alles',
    device: 'Geräte',
    device_group: 'Gerätegruppen',
    interface: 'Netzwerkschnittstelle',
    vlan: 'VLAN',
    subnet: 'Subnetz der Quellen',
    destination: 'Zieladressen',
    domain: 'Domains',
  },
  sourceHints: {
    interface: 'Name der Schnittstelle, auf der Verkehr ankommt. Mehrere mit Kommas.',
    vlan: '1 bis 4094. Mehrere mit Kommas.',
    subnet: 'Etwa 192.168.10.0/24. Mehrere mit Kommas.',
    destination: 'Eine Adresse, ein Netz oder Adresse:Port. Mehrere mit Kommas.',
    domain:
      'example.com und alles darunter, =example.com nur sie selbst, *.example.com nur darunter, ~Ausdruck. Mehrere mit Kommas.',
  },
  sourceValue: 'Wert',
  noDevices: 'Noch ist kein Gerät bekannt.',
  noGroups: 'Es gibt keine Gerätegruppe.',
  way: 'Pfad',
  ways: { hops: 'Hops', profile: 'Profil', chain: 'Kette' },
  profile: 'Profil',
  chain: 'Kette',
  choose: 'Auswählen',
  hopUse: 'Mehrere Hops',
  hopUses: { path: 'verschachtelt', failover: 'Ausweichen', split: 'aufgeteilt' },
  hopUseMeans: {
    path: 'Einer im anderen: jeder Hop wird über den vorigen erreicht.',
    failover: 'Der erste Hop, der geht, nimmt den ganzen Verkehr.',
    split: 'Neue Verbindungen verteilen sich auf die Tunnel. Eine Verbindung wechselt nie.',
  },
  hopTypes: { vpn: 'Tunnel', interface: 'Uplink', proxy: 'Proxy', mesh_peer: 'Mesh-Peer' },
  hopType: (n) => `Art von Hop ${n}`,
  hopTarget: (n) => `Ziel von Hop ${n}`,
  addHop: 'Hop hinzufügen',
  removeHop: (n) => `Hop ${n} entfernen`,
  hopUp: (n) => `Hop ${n} nach oben`,
  hopDown: (n) => `Hop ${n} nach unten`,
  dragHop: (n) => `Hop ${n} ziehen`,
  noHops: {
    'fail-closed': 'Keine Hops + fail-closed = diese Geräte sind abgeschnitten.',
    'fail-degraded': 'Keine Hops + fail-degraded = diese Geräte sind abgeschnitten.',
    'fail-open': 'Keine Hops + fail-open = diese Geräte nehmen die Standardroute.',
  },
  failLabel: 'Verhalten bei Ausfall',
  failOptions: {
    'fail-closed': 'Sperren (fail-closed)',
    'fail-degraded': 'Nehmen, was bleibt (fail-degraded)',
    'fail-open': 'Direkt hinauslassen (fail-open)',
  },
  failOfProfile: 'Wie im Profil',
  failSentences: {
    'fail-closed': 'Nichts geht hinaus, bis ein Hop wieder geht.',
    'fail-degraded':
      'Ausgefallene Hops werden übersprungen, solange ein Tunnel oder Proxy bleibt. Nie direkt.',
    'fail-open': 'Verkehr geht über die Standardroute, ungeschützt.',
  },
  failSentence: {
    'fail-closed': 'fallen ihre Hops aus, sperrt sie',
    'fail-degraded': 'fallen Hops aus, nimmt sie die übrigen und lässt nie direkt hinaus',
    'fail-open': 'fallen ihre Hops aus, lässt sie Verkehr direkt hinaus',
  },
  picture: {
    hop: 'Hop',
    'fail-closed': 'gesperrt',
    'fail-degraded': 'nächster Hop',
    'fail-open': 'ungeschützt',
  },
  stricterClass: (name, fail) => `Durch die Schutzklasse ${name} gilt ${fail}.`,
  reject: 'Gesperrte Pakete',
  rejects: { unreachable: 'als nicht erreichbar beantworten', drop: 'still verwerfen' },
  sticky: 'Verbindungen eines Pools bleiben',
  stickies: {
    flow: 'jede auf ihrem Hop',
    source: 'je Gerät zusammen',
    source_dest: 'je Gerät und Ziel zusammen',
  },
  stickyOfProfile: 'wie im Profil',
  expires: 'Endet am',
  expiresHint: 'Leer: nie.',
  privacyClass: 'Schutzklasse',
  noneChosen: 'keine',
  jsonLabel: 'Die Richtlinie als JSON',
  jsonHint: 'Dasselbe Objekt wie im Formular, so wie die API es nimmt.',
  jsonInvalid: (message) => `Das ist kein JSON: ${message}`,
  checks: 'Prüfung durch das Gateway',
  checking: 'Wird geprüft',
  valid: 'Das Gateway nähme das an.',
  preview: 'Was passiert',
  situations: {
    up: 'Alle Hops gehen',
    first: 'Erster Hop fällt aus',
    down: 'Alle Tunnel fallen aus',
    boot: 'Bevor der Plan geladen ist',
  },
  compiledNow: 'Kompiliert beim jetzigen Zustand der Hops',
  inForce: 'In Kraft',
  notInForce: 'Diese Richtlinie ist nicht aktiv.',
  hits: (packets, bytes) => `${packets} Pakete, ${bytes}`,
  matrix: 'Leck-Matrix',
  matrixRunning: 'aus dem aktiven Plan berechnet',
  matrixPending: 'aus dem Plan mit ausstehenden Änderungen berechnet',
  withPending: 'Mit Änderungen',
  running: 'Aktiv',
  view: 'Plan',
  legend: {
    ok: 'über einen Hop',
    blocked: 'gesperrt',
    direct: 'direkt, ungeschützt',
    leak: 'LECK: direkt gegen die Richtlinie',
  },
  states: {
    up: 'Alles geht',
    degraded: 'Erster Hop aus',
    down: 'Alles aus',
    flapping: 'Wechselnd',
    daemon_down: 'Dienst gestoppt',
    boot: 'Systemstart',
  },
  now: 'Jetzt',
  hopIsDown: (name) => `${name} aus`,
  via: (name) => `über ${name}`,
  chosen: (name) => `${name}, gewählt`,
  cellBlocked: 'gesperrt',
  cellDirect: 'direkt',
  cellDIRECT: 'DIREKT',
  cellLeak: (name) => (name ? `LECK: ${name}` : 'LECK'),
  cellTitle: (dns, ipv6) => `DNS: ${dns}. IPv6: ${ipv6}.`,
  outcomes: {
    blocked: 'gesperrt',
    direct: 'direkt',
    tunnel: 'über die eigenen Hops',
    next_hop: 'über andere Hops',
  },
  pendingTag: 'ausstehend',
  matrixUnrecorded: (hosts, by) =>
    `${hosts === 1 ? '1 Host, der kein Gerät ist' : `${formatNumber(hosts)} Hosts, die kein Gerät sind`}: ${by}`,
  matrixEmpty: 'Keine Richtlinie ist aktiv, also gibt es nichts zu berechnen.',
  pendingMatrixMissing: (n) =>
    `${zahl(n, 'Änderung ist gespeichert und fehlt', 'Änderungen sind gespeichert und fehlen')} in dieser Matrix: sie zeigt den aktiven Plan.`,
  matrixAnswer: {
    none: 'Keine Richtlinie leckt, in welchem Zustand die Tunnel auch sind.',
    low: 'Richtlinien lassen nur dort direkt hinaus, wo es so gewählt ist.',
    high: 'Mindestens eine Richtlinie lässt Verkehr gegen ihre eigene Regel hinaus.',
  },
  failMatrix: 'Ausfall-Matrix',
  failMatrixHint: 'jede Richtlinie jetzt, ohne ihren ersten Hop und ganz ohne Hops',
  failColumns: {
    policy: 'Richtlinie',
    hops: 'Hops',
    current: 'Jetzt',
    first: 'Erster Hop fällt aus',
    all: 'Alle fallen aus',
    leak: 'Kann lecken',
  },
  ...policyExceptions,
  ...policyProfiles,
  ...policyClasses,
  ...policyReview,
}
