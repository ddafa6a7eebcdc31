import type { Text } from '..'

export const merge: Text['merge'] = {
  title: 'Inzwischen geändert',
  sentence:
    'Seit dem Öffnen wurde eine andere Änderung gespeichert. Für jedes Feld, das beide ändern, wählen.',
  noClash: 'Seit dem Öffnen wurde eine andere Änderung gespeichert. Die beiden ändern verschiedene Felder.',
  field: 'Feld',
  base: 'Vorher',
  yours: 'Meine',
  theirs: 'Andere',
  save: 'Beide speichern',
}
