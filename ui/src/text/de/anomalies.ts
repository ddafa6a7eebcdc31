import type { Text } from '..'

export const anomalies: Text['anomalies'] = {
  tab: 'Auffälligkeiten',
  question: 'Was ist ungewöhnlich?',
  sentence: (open, day, learning, devices) => {
    const now =
      open === 0
        ? 'Gerade nichts'
        : open === 1
          ? '1 Auffälligkeit ist offen'
          : `${open} Auffälligkeiten sind offen`
    const learned =
      devices === 0
        ? 'Noch wird kein Gerät beobachtet.'
        : learning === 0
          ? `Von allen ${devices} Geräten ist bekannt, was üblich ist.`
          : `Von ${learning} der ${devices} Geräte wird noch gelernt, was üblich ist.`
    return `${now}, ${day} in den letzten 24 Stunden. ${learned}`
  },
  disabled: 'Nach Auffälligkeiten wird nicht gesucht: Sie sind ausgeschaltet.',
  list: 'Auffälligkeiten',
  listHint:
    'Der letzten 30 Tage, neueste zuerst. Ein Gerät wird mit sich selbst zur selben Stunde verglichen.',
  none: 'Es wurde nichts Auffälliges gefunden.',
  anyKind: 'Alle Arten',
  anyDevice: 'Alle Geräte',
  anyStatus: 'Offene und geschlossene',
  deleted: 'gelöschtes Gerät',
  usual: (amount) => `üblich: ${amount}`,
  flows: 'Flows dieser Zeit',
  queries: 'DNS-Anfragen dieser Zeit',
  columns: {
    kind: 'Art',
    device: 'Gerät',
    observed: 'Beobachtet',
    score: 'Wert',
    first: 'Zuerst gesehen',
    status: 'Zustand',
    source: 'Beruht auf',
    state: 'Beobachtung',
    count: 'In 30 Tagen',
  },
  statuses: { open: 'offen', closed: 'geschlossen' },
  facts: {
    observed: 'Beobachtet',
    threshold: 'Auffällig ab',
    median: 'Üblich (Median)',
    deviation: 'Mediane Abweichung',
    basis: 'Gelernt aus',
    window: 'Zeitfenster',
    source: 'Beruht auf',
    last: 'Zuletzt gesehen',
  },
  noBaseline: 'eine Beobachtung genügt',
  bases: {
    hour_of_week: (count) => `${count}-mal derselben Stunde der Woche`,
    hour_of_day: (count) => `${count}-mal derselben Stunde aller Tage`,
    all_hours: (count) => `${count} Stunden aller Zeiten`,
    fixed: () => 'einer festen Schwelle',
  },
  kindsTitle: 'Arten',
  kindsHint: 'Welche Arten beobachtet werden, und warum andere nicht.',
  observed: 'beobachtet',
  notObserved: 'nicht beobachtet',
  sources: {
    device_counters: 'Zähler der Geräte',
    query_log: 'DNS-Anfragen',
    hosts: 'Hosts im LAN',
    flow_log: 'Flow-Log',
    countries: 'Flow-Log, mit Ländern der Adressen',
  },
  kinds: {
    abnormal_upload: ['Ungewöhnlicher Upload', 'Es sendet weit mehr als üblich zu dieser Stunde.'],
    large_upload: ['Großer Upload', 'Es sendete in einer Stunde mehr, als die Grenze erlaubt.'],
    new_destination_country: ['Neues Land', 'Seine erste Verbindung in ein Land.'],
    new_port: ['Neuer Port', 'Seine erste Verbindung zu einem Port.'],
    dns_volume: ['Viele DNS-Anfragen', 'Weit mehr DNS-Anfragen als üblich zu dieser Stunde.'],
    dns_nxdomain_burst: [
      'Namen, die es nicht gibt',
      'Weit mehr Anfragen danach als üblich zu dieser Stunde.',
    ],
    dga_like: ['Erzeugte Namen', 'Anfragen nach Namen, die erzeugt wirken und die es nicht gibt.'],
    dns_tunnel_like: ['Daten in DNS', 'Sehr viele lange Namen unter einer Domain.'],
    beaconing: ['Regelmäßige Verbindungen', 'Verbindungen zu einem Ziel in regelmäßigen Abständen.'],
    port_scan: ['Port-Scan', 'Verbindungen zu sehr vielen Ports oder Adressen.'],
    night_activity: ['Nachts aktiv', 'Verkehr zu einer Stunde, zu der es sonst ruhig ist.'],
    mac_spoof: ['MAC-Adresse an zwei Schnittstellen', 'Eines von beiden ist vielleicht nicht das Gerät.'],
    doh_usage: ['DNS über HTTPS', 'Es nutzt einen öffentlichen Resolver über HTTPS.'],
    tor_or_vpn_usage: ['Tor oder eigenes VPN', 'Sein Verkehr umgeht die Wege des Gateways.'],
  },
}
