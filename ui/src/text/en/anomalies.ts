import type { Schemas } from '@/api/client'

type Kind = [name: string, means: string]

export const anomalies = {
  tab: 'Anomalies',
  question: 'What is unusual?',
  sentence: (open: number, day: number, learning: number, devices: number) => {
    const now = open === 0 ? 'Nothing now' : open === 1 ? '1 anomaly is open' : `${open} anomalies are open`
    const learned =
      devices === 0
        ? 'No device is observed yet.'
        : learning === 0
          ? `What is usual is known of all ${devices} devices.`
          : `What is usual is still learned of ${learning} of ${devices} devices.`
    return `${now}, ${day} in the last 24 hours. ${learned}`
  },
  disabled: 'It is not looked for anomalies: they are turned off.',
  list: 'Anomalies',
  listHint: 'Of the last 30 days, newest first. A device is compared with itself at the same hour.',
  none: 'No anomaly was found.',
  anyKind: 'All kinds',
  anyDevice: 'All devices',
  anyStatus: 'Open and closed',
  deleted: 'deleted device',
  usual: (amount: string) => `usual: ${amount}`,
  flows: 'Flows of this time',
  queries: 'DNS queries of this time',
  columns: {
    kind: 'Kind',
    device: 'Device',
    observed: 'Observed',
    score: 'Score',
    first: 'First seen',
    status: 'State',
    source: 'Rests on',
    state: 'Observation',
    count: 'In 30 days',
  },
  statuses: { open: 'open', closed: 'closed' } satisfies Record<Schemas['AnomalyStatus'], string>,
  facts: {
    observed: 'Observed',
    threshold: 'Anomaly from',
    median: 'Usual (median)',
    deviation: 'Median deviation',
    basis: 'Learned from',
    window: 'Window',
    source: 'Rests on',
    last: 'Last seen',
  },
  noBaseline: 'one observation is enough',
  bases: {
    hour_of_week: (count: number) => `${count} times the same hour of the week`,
    hour_of_day: (count: number) => `${count} times the same hour of all days`,
    all_hours: (count: number) => `${count} hours of all times`,
    fixed: () => 'a fixed threshold',
  } satisfies Record<Schemas['BaselineBasis'], (count: number) => string>,
  kindsTitle: 'Kinds',
  kindsHint: 'Which kinds are observed, and why others are not.',
  observed: 'observed',
  notObserved: 'not observed',
  sources: {
    device_counters: 'Counters of devices',
    query_log: 'DNS queries',
    hosts: 'Hosts of the LAN',
    flow_log: 'Flow log',
    countries: 'Flow log, with countries of addresses',
  } as Record<string, string>,
  kinds: {
    abnormal_upload: ['Unusual upload', 'It sends far more than usual at this hour.'],
    large_upload: ['Large upload', 'It sent more within an hour than is set as the limit.'],
    new_destination_country: ['New country', 'Its first connection to a country.'],
    new_port: ['New port', 'Its first connection to a port.'],
    dns_volume: ['Many DNS queries', 'Far more DNS queries than usual at this hour.'],
    dns_nxdomain_burst: ['Names that do not exist', 'Far more queries for them than usual at this hour.'],
    dga_like: ['Generated names', 'Queries for names that look generated and do not exist.'],
    dns_tunnel_like: ['Data in DNS', 'Very many long names below one domain.'],
    beaconing: ['Regular connections', 'Connections to one destination at regular intervals.'],
    port_scan: ['Port scan', 'Connections to very many ports or addresses.'],
    night_activity: ['Active at night', 'Traffic at an hour at which it is usually quiet.'],
    mac_spoof: ['MAC address at two interfaces', 'One of the two may not be the device.'],
    doh_usage: ['DNS over HTTPS', 'It uses a public resolver by DNS over HTTPS.'],
    tor_or_vpn_usage: ['Tor or an own VPN', 'Its traffic passes the paths of the gateway by.'],
  } satisfies Record<Schemas['AnomalyKind'], Kind>,
}
