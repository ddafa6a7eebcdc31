import type { Text } from '..'

export const shell: Text['shell'] = {
  product: 'Gateway',
  home: 'Gateway, Übersicht',
  skip: 'Zum Inhalt',
  main: 'Hauptnavigation',
  mainSmall: 'Hauptnavigation, kleine Bildschirme',
  more: 'Mehr',
  breadcrumb: 'Pfad',
  notFound: 'Diese Seite gibt es nicht.',
  find: 'Suchen oder ändern',
  findings: 'Treffer',
  nothingFound: 'Nichts heißt so.',
  logOf: (domain) => `Anfragen nach ${domain}`,
  kinds: { policy: 'Richtlinie', tunnel: 'Tunnel', device: 'Gerät', setting: 'Einstellung' },
  running: (version, uptime) => `${version}, läuft seit ${uptime}`,
  theme: 'Farben',
  themes: { system: 'System', light: 'Hell', dark: 'Dunkel' },
  language: 'Sprache',
  account: (name, role) => `Konto: ${name}${role ? `, ${role}` : ''}`,
  accounts: 'Konten und Schlüssel',
  guest: 'nicht angemeldet',
  signInOff: 'Anmeldung ist aus',
  signIn: 'Anmelden',
  signOut: 'Abmelden',
  sessionEnded:
    'Die Sitzung ist zu Ende. Nach der Anmeldung geht es weiter; nichts Geschriebenes geht verloren.',
  username: 'Benutzername',
  password: 'Passwort',
  everyoneIsAdmin: (host) => `Die Anmeldung ist aus: wer ${host} erreicht, ist Administrator.`,
  readOnly: 'Nur lesen: dieses Gerät ist im Netz des Gateways. Änderungen brauchen eine Anmeldung.',
  unreachable: 'Das Gateway antwortet nicht.',
  changeWaits: 'Das Gateway hat noch nicht geantwortet. Das Verlangte kann noch geschehen.',
  silentFor: (age: string) => `Das Gateway antwortet seit ${age} nicht.`,
  lastKnown: (time: string) => `Zu sehen ist der letzte bekannte Stand, von ${time}.`,
  kernelGoesOn: 'Über den Verkehr sagt das nichts: Die Regeln im Kernel wirken ohne den Dienst weiter.',
  showLeak: 'Zeigen',
  confirmWithin: (left) => `Die letzte Änderung wird in ${left} zurückgenommen.`,
  confirmWaits: 'Die letzte Änderung wird zurückgenommen, wenn sie nicht bestätigt wird.',
  confirmWhy: 'Behalten, wenn alles geht wie gewünscht.',
  keep: 'Behalten',
  undo: 'Jetzt zurücknehmen',
  confirmed: 'Die Änderung bleibt.',
  undone: 'Die Änderung ist zurückgenommen.',
  pending: 'Ausstehende Änderungen',
  pendingSentence: 'Änderungen an Richtlinien sind gespeichert, aber nicht aktiv.',
  pendingCount: (count) =>
    count === 1
      ? '1 Änderung an Richtlinien gespeichert, nicht aktiv.'
      : `${count} Änderungen an Richtlinien gespeichert, nicht aktiv.`,
  savedBy: (name, age) => `Gespeichert von ${name}, vor ${age}.`,
  alerts: (count) =>
    count === null
      ? 'Meldungen, nicht bekannt'
      : count === 1
        ? 'Meldungen, 1 aktiv'
        : `Meldungen, ${count} aktiv`,
  pendingRevisions: (stored, applied) => `Gespeichert ist Stand ${stored}, angewandt ${applied}.`,
  review: 'Prüfen',
  keys: {
    title: 'Tasten',
    single: 'Tasten ohne Strg oder Alt',
    list: [
      ['Ctrl K', 'Seite, Gerät oder Einstellung suchen'],
      ['/', 'Filtern'],
      ['j k', 'Nächste und vorige Zeile'],
      ['Enter', 'Öffnen'],
      ['Esc', 'Schließen'],
      ['Alt ↑ ↓', 'Richtlinie verschieben'],
      ['?', 'Diese Liste'],
    ],
  },
}
