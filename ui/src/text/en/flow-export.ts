import type { Schemas } from '@/api/client'

type Pair = [label: string, hint: string]

export const flowExport = {
  tab: 'Collectors',
  question: 'Where are records of flows sent?',
  sentence: (on: string[]) => (on.length === 0 ? 'Nowhere: no collector is on.' : `To: ${on.join(', ')}.`),
  status: 'What each has got',
  statusHint:
    'The flow log is the queue: one that was away gets what it missed. Its own bounds are in the configuration file (flow_log).',
  kept: 'One is stored. It is kept if this stays empty.',
  names: { ipfix: 'IPFIX', syslog: 'Syslog', otlp: 'OpenTelemetry (OTLP)' } satisfies Record<
    Schemas['Collector'],
    string
  >,
  statuses: {
    off: 'off',
    unknown: 'nothing sent yet',
    ok: 'sending',
    failed: 'failing',
  } satisfies Record<Schemas['CollectorStatus'], string>,
  columns: {
    collector: 'Collector',
    status: 'State',
    sent: 'Sent',
    waiting: 'Waiting',
    lost: 'Lost',
    last: 'Last sent',
  },
  transports: {
    udp: 'UDP: nothing says whether they arrive',
    tcp: 'TCP: what is not confirmed is sent again',
  } satisfies Record<Schemas['IpfixTransport'], string>,
  ipfix: {
    enabled: 'Send IPFIX (RFC 7011), as nfdump takes it',
    host: 'Collector',
    port: ['Port', 'Usually 4739.'],
    transport: 'Transport',
    observation_domain: ['Observation domain', 'Distinguishes gateways behind one address.'],
  } satisfies Record<string, string | Pair>,
  syslog: {
    enabled: 'Send a message of RFC 5424 for each record, with JSON',
    host: 'Collector',
    port: ['Port', 'Usually 6514 with TLS, else 514.'],
    tls: ['TLS', 'Without it the records pass the network in clear text.'],
    ca_certificate: ['Authorities', 'Certificates in PEM, instead of those of the system.'],
  } satisfies Record<string, string | Pair>,
  otlp: {
    enabled: 'Send logs and metrics over HTTP',
    url: ['Address', 'Without a path, such as https://collector.example.net:4318.'],
    bearer: 'Token',
    logs: 'A log record for each flow',
    metrics: 'The metrics of the gateway',
    metrics_interval_sec: 'Metrics every, s',
    ca_certificate: ['Authorities', 'Certificates in PEM, instead of those of the system.'],
  } satisfies Record<string, string | Pair>,
}
