import type { Text } from '..'

export const top: Text['top'] = {
  clients: 'Häufigste Clients',
  names: 'Häufigste Namen',
  hint: 'Nach DNS-Anfragen seit dem Start des Daemons.',
  namesHint: 'Summe über die Namen, die jeder Client am häufigsten erfragt, seit dem Start des Daemons.',
  empty: 'Noch wurde keine Anfrage gezählt.',
  queries: (count) => `${count} Anfragen`,
  blocked: (count) => `${count} gesperrt`,
  device: (queries, blocked, cached) =>
    `Seit dem Start des Daemons: ${queries} Anfragen, ${blocked} gesperrt, ${cached} aus dem Cache.`,
  deviceNone: 'Seit dem Start des Daemons wurde keine Anfrage von ihm gezählt.',
}
