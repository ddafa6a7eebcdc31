import type { policyReview as enPolicyReview } from '../en/policy-review'
import type { Text } from '..'

const zahl = (n: number, eins: string, viele: string) => `${n} ${n === 1 ? eins : viele}`

/** Texts of the compiled plan and the review of changes. */
export const policyReview: Pick<Text['policies'], keyof typeof enPolicyReview> = {
  compiledQuestion: 'Was setzt der Kernel durch?',
  compiledAnswer: (generation, rules, drift) =>
    `Generation ${generation} ist mit ${zahl(rules, 'Regel', 'Regeln')} kompiliert; ${drift === 0 ? 'im Kernel ist nichts abgewichen' : `${zahl(drift, 'Objekt im Kernel hat', 'Objekte im Kernel haben')} andere geändert`}.`,
  compiled: 'Kompiliert',
  compiledHint: (backend, hash) => `${backend}, ${hash}`,
  searchCompiled: 'Im kompilierten Plan suchen',
  lines: (n) => zahl(n, 'Zeile', 'Zeilen'),
  shownOf: (n, all) => `${n} von ${all} Zeilen`,
  parts: {
    rules: 'Regeln',
    routes: 'Routen',
    excludes: 'Ziele ohne Richtlinie',
    addresses: 'Adressen',
    sysctls: 'Kernel-Einstellungen',
    wireguard: 'WireGuard',
    openvpn: 'OpenVPN',
    verdicts: 'Entscheidungen, Pakete und Bytes',
    prevented_leaks: 'Vom Ausgangswächter aufgehalten',
  },
  noLine: 'Keine Zeile enthält diesen Text.',
  drift: 'Abweichungen',
  driftHint: 'Kernel-Objekte, die ein anderes Programm geändert hat, neueste zuerst',
  driftEmpty: 'Seit dem Start hat niemand sonst etwas geändert.',
  driftColumns: {
    object: 'Objekt',
    field: 'Feld',
    expected: 'Erwartet',
    actual: 'Gefunden',
    at: 'Gesehen',
    state: 'Zustand',
  },
  repaired: 'behoben',
  notRepaired: 'nicht behoben',
  reconcile: 'Jetzt vergleichen und beheben',
  reconciled: (drift) =>
    drift === 0 ? 'Der Kernel entspricht dem Plan.' : `${zahl(drift, 'Objekt war', 'Objekte waren')} anders.`,
  reviewTitle: (n) => (n === 0 ? 'Prüfen' : `${zahl(n, 'Änderung', 'Änderungen')} prüfen`),
  reviewTabs: { effect: 'Wirkung', policies: 'Richtlinien', dataplane: 'Datenebene' },
  reviewViews: 'Änderungen',
  comparedWith: (generation) => `Verglichen mit den aktiven Regeln, Generation ${generation}`,
  compared: 'Verglichen mit den aktiven Regeln',
  closeReview: 'Prüfung schließen',
  changeTitle: {
    new: (name, priority) => `${name}, neu mit Priorität ${priority}`,
    edited: (name, priority) => `${name}, Priorität ${priority}`,
    off: (name) => `${name}, ausgeschaltet`,
    removed: (name) => `${name}, gelöscht`,
  },
  appliesTo: (devices, names) => `${zahl(devices, 'Gerät', 'Geräte')}${names ? `: ${names}` : ''}`,
  whenState: (state) => `${state}:`,
  noRule: 'keine eigene Regel',
  nextRule: 'die nächste passende Richtlinie, sonst die Standardroute',
  sameEffect: 'in allen Zuständen dieselbe Wirkung',
  fieldChange: (field, from, to) => `${field}: ${from} wird ${to}`,
  fedChange: 'Ein Profil, eine Kette oder eine Schutzklasse, die Richtlinien benutzen, ist geändert.',
  fieldColumns: { policy: 'Richtlinie', field: 'Feld', before: 'Aktiv', after: 'Gespeichert', by: 'Von' },
  dataplaneSame: 'Die kompilierten Regeln bleiben gleich.',
  dataplaneMore: (n) => `und ${n} weitere Zeilen`,
  invalidPlan: 'Das Gateway weigert sich, das anzuwenden:',
  opensDirect: (names, when) => `Das öffnet einen direkten Pfad für ${names}, ${when}.`,
  whenDown: (states) => `wenn: ${states}`,
  rightNow: 'sofort',
  typeName: (name, kind) =>
    `Zum Anwenden ${kind === 'device' ? 'den Namen des Geräts' : kind === 'policy' ? 'den Namen der Richtlinie' : 'die Namen der Richtlinien'} eingeben: ${name}. Vorher entsteht ein Schnappschuss.`,
  mayOpenDirect: (names) =>
    `Das öffnet ${names} vielleicht einen direkten Pfad: es entscheidet die nächste passende Richtlinie, sonst die Standardroute.`,
  typeNameLabel: (name) => `Zum Bestätigen ${name} eingeben`,
  undoItself: 'Von selbst zurücknehmen, wenn ich nicht binnen 90 s bestätige',
  applySnapshot: 'Anwenden mit Schnappschuss',
  apply: 'Anwenden',
  appliedSay: (snapshot) => (snapshot ? `Angewendet. Schnappschuss ${snapshot}.` : 'Angewendet.'),
  discard: 'Verwerfen',
  discardTitle: 'Alle ausstehenden Änderungen verwerfen',
  discardMeans: (changes) =>
    `${changes === 1 ? '1 Objekt geht' : `${changes} Objekte gehen`} auf den angewandten Stand zurück. Der Verkehr ändert sich nicht. Vorher entsteht ein Schnappschuss.`,
  discardNothing: 'Hier lässt sich nichts zurückholen.',
  discardCreates: 'kommt zurück',
  discardUpdates: 'bekommt die angewandten Werte',
  discardDeletes: 'wird gelöscht',
  discardRemaining: (policies) =>
    policies === 1 ? '1 Richtlinie bleibt ausstehend:' : `${policies} Richtlinien bleiben ausstehend:`,
  discardedPart: (policies) =>
    policies === 1
      ? 'Verworfen; 1 Richtlinie bleibt ausstehend.'
      : `Verworfen; ${policies} Richtlinien bleiben ausstehend.`,
  discarded: 'Die gespeicherten Richtlinien sind wieder die aktiven.',
  waitsConfirm: 'Die letzte Änderung wartet auf ihre Bestätigung. Erst behalten oder zurücknehmen.',
}
