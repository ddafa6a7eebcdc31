import type { Text } from '..'

export const flowExport: Text['flowExport'] = {
  tab: 'Sammler',
  question: 'Wohin gehen die Einträge des Flow-Logs?',
  sentence: (on) => (on.length === 0 ? 'Nirgendwohin: Kein Sammler ist an.' : `An: ${on.join(', ')}.`),
  status: 'Was jeder bekommen hat',
  statusHint:
    'Das Flow-Log ist die Warteschlange: Wer weg war, bekommt nach, was fehlt. Seine Grenzen stehen in der Konfigurationsdatei (flow_log).',
  kept: 'Eines ist gespeichert. Es bleibt, wenn dieses Feld leer bleibt.',
  names: { ipfix: 'IPFIX', syslog: 'Syslog', otlp: 'OpenTelemetry (OTLP)' },
  statuses: { off: 'aus', unknown: 'noch nichts gesendet', ok: 'sendet', failed: 'schlägt fehl' },
  columns: {
    collector: 'Sammler',
    status: 'Zustand',
    sent: 'Gesendet',
    waiting: 'Wartet',
    lost: 'Verloren',
    last: 'Zuletzt gesendet',
  },
  transports: {
    udp: 'UDP: Nichts sagt, ob sie ankommen',
    tcp: 'TCP: Was nicht bestätigt ist, geht noch einmal hinaus',
  },
  ipfix: {
    enabled: 'IPFIX (RFC 7011) senden, wie nfdump es nimmt',
    host: 'Sammler',
    port: ['Port', 'Meist 4739.'],
    transport: 'Transport',
    observation_domain: ['Observation Domain', 'Unterscheidet Gateways hinter einer Adresse.'],
  },
  syslog: {
    enabled: 'Für jeden Eintrag eine Nachricht nach RFC 5424 senden, mit JSON',
    host: 'Sammler',
    port: ['Port', 'Meist 6514 mit TLS, sonst 514.'],
    tls: ['TLS', 'Ohne TLS gehen die Einträge im Klartext durch das Netz.'],
    ca_certificate: ['Zertifizierungsstellen', 'Zertifikate in PEM, statt derer des Systems.'],
  },
  otlp: {
    enabled: 'Logs und Metriken über HTTP senden',
    url: ['Adresse', 'Ohne Pfad, etwa https://collector.example.net:4318.'],
    bearer: 'Token',
    logs: 'Für jeden Flow einen Log-Eintrag',
    metrics: 'Die Metriken des Gateways',
    metrics_interval_sec: 'Metriken alle, s',
    ca_certificate: ['Zertifizierungsstellen', 'Zertifikate in PEM, statt derer des Systems.'],
  },
}
