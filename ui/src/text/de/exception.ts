import type { Text } from '..'

export const exception: Text['exception'] = {
  title: 'Für eine Weile erlauben',
  titleOf: (device) => `Ausnahme für ${device}`,
  device: 'Gerät',
  choose: 'auswählen',
  deviceMissing: 'Zuerst ein Gerät wählen.',
  type: 'Art',
  types: {
    'temporary-direct': 'Direkt für eine Weile',
    'service-allowlist': 'Nur einige Ziele',
    'emergency-bypass': 'Umgehung im Notfall',
    'diagnostic-bypass': 'Umgehung zur Diagnose',
    'captive-portal': 'Anmeldung an einem Captive Portal',
    quarantine: 'Quarantäne',
  },
  effects: {
    'temporary-direct':
      'Das Gerät geht unverschlüsselt direkt hinaus, an seinen Richtlinien vorbei. Das zählt im Urteil.',
    'service-allowlist': 'Diese Ziele erreicht das Gerät direkt. Alles andere folgt seinen Richtlinien.',
    'emergency-bypass':
      'Das Gerät geht unverschlüsselt direkt hinaus, an seinen Richtlinien vorbei. Das zählt im Urteil.',
    'diagnostic-bypass':
      'Das Gerät geht unverschlüsselt direkt hinaus, an seinen Richtlinien vorbei. Das zählt im Urteil.',
    'captive-portal': 'Das Gerät darf die Anmeldeseite des Netzes vor dem Gateway öffnen.',
    quarantine: 'Das Gerät ist vom Netz getrennt, bis die Ausnahme endet.',
  },
  targets: 'Ziele',
  targetsHint: 'Adressen, Netze, Adresse:Port, ein Port als :443 oder Domains, durch Kommas getrennt.',
  duration: 'Dauer',
  durations: { '15': '15 min', '60': '60 min', '240': '4 h', '1440': '24 h' },
  minutes: 'Minuten',
  ends: (time) => `Endet von selbst um ${time}, auch wenn der Dienst nicht läuft.`,
  reason: 'Grund',
  reasonHint: 'Steht im Protokoll der Änderungen.',
  allow: 'Erlauben',
  quarantine: 'In Quarantäne setzen',
  made: (time) => `Die Ausnahme gilt bis ${time}.`,
  ended: 'Die Ausnahme ist beendet.',
  prolonged: 'Die Ausnahme gilt 30 Minuten länger.',
  endNow: 'Jetzt beenden',
  addMinutes: '30 min mehr',
  until: (time) => `endet ${time}`,
  by: (who) => `von ${who}`,
}
