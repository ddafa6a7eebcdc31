import type { policyExceptions as enPolicyExceptions } from '../en/policy-exceptions'
import type { Text } from '..'

const zahl = (n: number, eins: string, viele: string) => `${n} ${n === 1 ? eins : viele}`

/** Texts of exceptions from policies. */
export const policyExceptions: Pick<Text['policies'], keyof typeof enPolicyExceptions> = {
  exceptionAnswer: (n, direct) =>
    n === 0
      ? 'Keine Ausnahme ist aktiv.'
      : `${zahl(n, 'Ausnahme ist', 'Ausnahmen sind')} aktiv, ${direct === 0 ? 'keine lässt' : `${direct} ${direct === 1 ? 'lässt' : 'lassen'}`} ein Gerät direkt hinaus.`,
  exceptionQuestion: 'Wer darf eine Zeit lang hinaus?',
  exceptions: 'Ausnahmen',
  exceptionsHint: 'Sie gelten vor allen Richtlinien und enden von selbst.',
  exceptionsEmpty:
    'Eine Ausnahme lässt ein Gerät für begrenzte Zeit und mit Begründung hinaus oder schneidet es ab.',
  exceptionTypes: {
    'emergency-bypass': 'Umgehung im Notfall',
    'diagnostic-bypass': 'Umgehung zur Diagnose',
    'service-allowlist': 'Einzelne Ziele erlauben',
    'temporary-direct': 'Vorübergehend direkt',
    quarantine: 'Quarantäne',
    'captive-portal': 'Anmeldeportal',
  },
  exceptionMeans: {
    'emergency-bypass': 'Das Gerät nimmt die Standardroute, weil etwas anderes nicht warten darf.',
    'diagnostic-bypass': 'Das Gerät nimmt die Standardroute, zur Diagnose.',
    'service-allowlist': 'Nur diese Ziele gehen über die Standardroute.',
    'temporary-direct': 'Das Gerät nimmt die Standardroute oder die Hops eines Profils.',
    quarantine: 'Nichts von diesem Gerät kommt durch das Gateway.',
    'captive-portal': 'Nur DNS und Web gehen über die Standardroute, um sich an einem Portal anzumelden.',
  },
  exceptionStatus: { planned: 'Geplant', active: 'Aktiv', expired: 'Beendet', revoked: 'Vorzeitig beendet' },
  exceptionType: 'Art',
  exceptionDevice: 'Gerät',
  exceptionUntil: 'Bis',
  exceptionReason: 'Begründung',
  exceptionBy: (user) => `von ${user}`,
  exceptionLeft: (age) => `noch ${age}`,
  endsAt: (time) => `endet ${time}`,
  duration: 'Dauer in Minuten',
  durations: [
    [15, '15 min'],
    [60, '1 h'],
    [240, '4 h'],
    [1440, '24 h'],
  ],
  durationHint: '1 bis 1440.',
  reasonHint: 'Sie erscheint im Prüfprotokoll und neben der Ausnahme.',
  reasonMissing: 'Eine Begründung fehlt.',
  targets: 'Ziele',
  targetsHint: 'Je Zeile eins: eine Adresse, ein Netz, Adresse:Port, :443, example.com, =example.com.',
  allowDirect: 'Das Gerät ohne Tunnel hinauslassen',
  allowDirectHint: 'Ohne das hat eine Umgehung keine Wirkung.',
  exceptionProfile: 'Über die Hops eines Profils statt über die Standardroute',
  startException: 'Ausnahme beginnen',
  exceptionStarted: (name) => `Die Ausnahme für ${name} ist aktiv.`,
  composer: 'Neue Ausnahme',
  endNow: 'Jetzt beenden',
  exceptionEnded: (name) => `Die Ausnahme für ${name} ist beendet.`,
  extend: (label) => `${label} länger`,
  extended: (name, time) => `Die Ausnahme für ${name} endet jetzt ${time}.`,
  extendedTwice: 'Die längere Ausnahme ist aktiv. Die alte ließ sich nicht beenden und endet von selbst.',
  past: 'Beendet',
}
