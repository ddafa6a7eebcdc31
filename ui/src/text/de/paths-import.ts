import type { Text } from '..'

/** Texts of the import of tunnels. */
export const pathsImport: Text['paths']['import'] = {
  title: 'Tunnel importieren',
  question: 'Was steht in der Datei?',
  answerEmpty:
    'Legen Sie eine .conf- oder .ovpn-Datei Ihres VPN-Anbieters ab, oder fügen Sie ihren Text ein.',
  answer: (kind, remote) =>
    remote === null
      ? `Ein ${kind}-Tunnel ohne Server: Die Gegenseite muss die Verbindung aufbauen.`
      : `Ein ${kind}-Tunnel zu ${remote}.`,
  answerRefused: (kind) => `Eine ${kind}-Datei, die so nicht importiert werden kann.`,
  notKnown: 'Dieser Text ist weder eine WireGuard- noch eine OpenVPN-Datei.',
  drop: '.conf- oder .ovpn-Datei hier ablegen',
  choose: 'Datei wählen',
  paste: 'Oder den Text der Datei einfügen',
  pasteHint: 'Das Gateway liest ihn für die Vorschau und speichert ihn erst beim Import.',
  tooLarge: 'Die Datei ist größer als 256 kB, also keine Tunneldatei.',
  again: 'Andere Datei',
  preview: 'Vorschau',
  previewHint: 'wie das Gateway die Datei liest, ohne Schlüssel; noch ist nichts gespeichert',
  address: 'Adressen',
  dns: 'Nameserver',
  server: 'Server',
  allowed: 'Erlaubte Adressen',
  keys: 'Schlüssel',
  keysSet: (preshared) => (preshared ? 'privater Schlüssel, Preshared Key' : 'privater Schlüssel'),
  mtu: 'MTU',
  cipher: 'Verschlüsselung',
  kind: 'Art',
  problems: 'Zu beachten',
  noProblems: 'Das Gateway nimmt die Datei, wie sie ist.',
  refused: 'Das Gateway nimmt diese Datei nicht an.',
  ifAny: 'nur, wenn der Server oder die Datei es braucht',
  name: 'Name',
  nameHint: 'a-z, 0-9, _ und -, bis zu 32 Zeichen',
  username: 'Benutzername',
  password: 'Passwort',
  passphrase: 'Passphrase des Schlüssels',
  submit: 'Tunnel importieren',
  done: (name) => `${name} ist importiert.`,
}
