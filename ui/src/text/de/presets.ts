import type { Text } from '..'

export const presets: Text['presets'] = {
  label: 'Vorlagen',
  question: 'Was gibt es schon fertig?',
  answer: (total, own) =>
    `${total === 1 ? 'Eine Vorlage ergibt' : `${total} Vorlagen ergeben`} eine Richtlinie oder ein Profil, dem nur noch Geräte und Hops fehlen${
      own === 0 ? '' : own === 1 ? '; eine ist eine eigene' : `; ${own} sind eigene`
    }.`,
  hint: 'Aus einer Vorlage entsteht eine gewöhnliche Richtlinie oder ein gewöhnliches Profil. Danach verweist nichts auf die Vorlage.',
  empty: 'Es gibt keine Vorlagen.',
  new: 'Vorlage',
  createTitle: 'Neue Vorlage',
  category: 'Kategorie',
  categories: {
    streaming: 'Streaming',
    gaming: 'Spiele',
    work: 'Arbeit',
    iot: 'Hausgeräte',
    privacy: 'Privatsphäre',
  },
  makes: 'Ergibt',
  kinds: { policy: 'eine Richtlinie', profile: 'ein Profil' },
  open: 'offen',
  direct: 'Standardroute',
  use: 'Verwenden',
  useTitle: 'Verwenden',
  useQuestion: (name) => `Was entsteht aus der Vorlage ${name}?`,
  useAnswer: {
    policy: 'Eine Richtlinie für die gewählten Geräte und Hops. Sie ist nach dem nächsten Anwenden aktiv.',
    profile: 'Ein Profil mit den gewählten Hops. Danach können Richtlinien und Geräte es verwenden.',
  },
  create: { policy: 'Richtlinie anlegen', profile: 'Profil anlegen' },
  confirmTitle: {
    policy: (name) => `Richtlinie ${name} anlegen`,
    profile: (name) => `Profil ${name} anlegen`,
  },
  confirmMeans: {
    policy: 'Die Richtlinie ist gespeichert und nicht aktiv. Sie wirkt ab dem nächsten Anwenden.',
    profile: 'Das Profil ändert nichts, bis eine Richtlinie, eine Gruppe oder ein Gerät es verwendet.',
  },
  template: 'Inhalt',
  templateHint: 'Die Felder, mit denen eine Richtlinie oder ein Profil beginnt.',
  builtinHint: 'Eingebaut: lässt sich ändern, aber nicht umbenennen oder löschen.',
  templateLabel: 'Felder (JSON)',
  templateFields: {
    policy: 'Der Rumpf von POST /routing/policies. Was fehlt, wird beim Verwenden abgefragt.',
    profile: 'Der Rumpf von POST /profiles. Was fehlt, wird beim Verwenden abgefragt.',
  },
  deleteAction: 'Vorlage löschen',
  deleteMeans: 'Richtlinien und Profile, die daraus entstanden sind, bleiben, wie sie sind.',
}
