import type { Text } from '..'

export const overview: Text['overview'] = {
  label: 'Übersicht',
  question: 'Verlässt gerade etwas das Netz am Schutz vorbei?',
  since: (time) => `Seit ${time}`,
}
