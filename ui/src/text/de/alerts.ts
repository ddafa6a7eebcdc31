import type { Text } from '..'

export const alerts: Text['alerts'] = {
  question: 'Worum muss ich mich kümmern?',
  sentence: (open, consequences, acknowledged) => {
    if (open === 0) return 'Um nichts: kein Alarm ist offen.'
    const first = open === 1 ? '1 Alarm ist offen' : `${open} Alarme sind offen`
    const behind =
      consequences === 0 ? '' : consequences === 1 ? ', mit 1 Folge' : `, mit ${consequences} Folgen`
    const seen =
      acknowledged === 0 ? '' : acknowledged === 1 ? ' 1 ist bestätigt.' : ` ${acknowledged} sind bestätigt.`
    return `${first}${behind}.${seen}`
  },
  open: 'Offen',
  openHint: 'Nach ihrer Ursache geordnet. Folgen eines anderen Alarms werden nicht gesendet.',
  none: 'Kein Alarm ist offen.',
  noneResolved: 'In den letzten 30 Tagen wurde kein Alarm erledigt.',
  consequences: (count) => (count === 1 ? '1 Folge' : `${count} Folgen`),
  acknowledge: 'Bestätigen',
  resolve: 'Erledigen',
  acknowledged: (title) => `${title}: bestätigt.`,
  resolved: (title) => `${title}: erledigt.`,
  acknowledgedBy: (name, time) => `Bestätigt von ${name}, ${time}`,
  since: (age) => `seit ${age}`,
  times: (count) => `${count}-mal`,
  rulesQuestion: 'Was löst einen Alarm aus?',
  resolvedTitle: 'Erledigt',
  resolvedHint: 'Aus den letzten 30 Tagen, die neuesten zuerst.',
  alert: 'Alarm',
  started: 'Beginn',
  ended: 'Ende',
  endedBy: 'Durch',
  byItself: 'von selbst',
  count: 'Anzahl',
  older: 'Ältere',
  newest: 'Neueste',
  rules: 'Regeln',
  rulesHint: 'Was einen Alarm auslöst.',
  lastFired: 'Zuletzt ausgelöst',
  never: 'nicht in 30 Tagen',
  stays: 'Er bleibt, bis ihn jemand erledigt.',
  returns: (time) => `Kehrt es innerhalb von ${time} wieder, ist es derselbe Alarm.`,
  scoped: (devices, groups) =>
    `Nur für ${[devices > 0 ? `${devices} Geräte` : '', groups > 0 ? `${groups} Gruppen` : ''].filter(Boolean).join(' und ')}.`,
  test: 'Probe senden',
  delivered: (ms) => `Zugestellt in ${ms} ms.`,
  notDelivered: (error) => `Nicht zugestellt: ${error}`,
  severities: { info: 'Hinweis', warning: 'Warnung', critical: 'Kritisch' },
  kinds: {
    tunnel_down: ['Tunnel ausgefallen', () => 'Ein Tunnel, der stehen soll, steht nicht.'],
    tunnel_flapping: ['Tunnel wackelt', (n, w) => `Ein Tunnel fiel ${n}-mal in ${w} aus.`],
    handshake_stale: [
      'Handshake veraltet',
      (n) => `Der letzte Handshake eines Tunnels ist älter als ${n} s.`,
    ],
    policy_fallback: [
      'Richtlinie auf Ausweichweg',
      (_, w) => `Eine Richtlinie nutzt seit ${w} einen anderen Weg als ihren ersten.`,
    ],
    policy_blocked: [
      'Richtlinie sperrt',
      (_, w) => `Eine Richtlinie sperrt seit ${w}, weil keiner ihrer Hops verfügbar ist.`,
    ],
    leak_detected: ['Leck', () => 'Pakete verließen das Gateway an der Ausgangswache vorbei.'],
    dns_bypass_attempt: ['Resolver umgangen', (n, w) => `Ein Gerät fragte ${n}-mal in ${w} andere Resolver.`],
    wan_down: ['Uplink ausgefallen', () => 'Ein Uplink erreicht nichts.'],
    wan_degraded: [
      'Uplink gestört',
      (_, w) => `Ein Uplink verliert oder verzögert seit ${w} mehr, als seine Grenzen erlauben.`,
    ],
    wan_failover: ['Uplink gewechselt', () => 'Der Verkehr ging auf einen anderen Uplink über.'],
    wan_flapping: ['Uplink wackelt', () => 'Ein Uplink kommt und geht, und wurde zurückgestellt.'],
    captive_portal: ['Anmeldeseite', () => 'Ein Uplink antwortet mit einer Anmeldeseite.'],
    dns_upstream_down: [
      'Resolver nicht erreichbar',
      () => 'Ein Resolver, an den Anfragen gehen, antwortet nicht.',
    ],
    blocklist_update_failed: [
      'Liste nicht erneuert',
      (n) => `Eine Liste konnte ${n}-mal in Folge nicht geholt werden.`,
    ],
    new_device: ['Neues Gerät', () => 'Ein Gerät wurde zum ersten Mal gesehen.'],
    device_offline: ['Gerät offline', (_, w) => `Ein bekanntes Gerät ist seit ${w} offline.`],
    device_quarantined: ['Gerät in Quarantäne', () => 'Ein Gerät kam in Quarantäne.'],
    rogue_dhcp: ['Fremder DHCP-Server', () => 'Ein anderer DHCP-Server antwortet im LAN.'],
    rogue_ra: ['Fremder Router', () => 'Ein anderer Router gibt sich im LAN bekannt.'],
    ip_conflict: ['Adresse doppelt', () => 'Zwei Hosts nutzen eine Adresse.'],
    dhcp_pool_exhausted: ['Adressen gehen aus', (n) => `${n} % des DHCP-Bereichs sind vergeben.`],
    exception_started: ['Ausnahme begonnen', () => 'Ein Gerät ist von seinen Richtlinien ausgenommen.'],
    exception_expiring: ['Ausnahme endet bald', (n) => `Eine Ausnahme endet in weniger als ${n} s.`],
    drift_detected: [
      'Abweichung',
      (n) => `Der Kernel wich in mindestens ${n} Objekten vom Plan ab und wurde berichtigt.`,
    ],
    apply_failed: ['Anwenden gescheitert', () => 'Ein Plan kam nicht in den Kernel. Der vorige gilt.'],
    rollback_performed: ['Zurückgesetzt', () => 'Die Konfiguration ging auf einen früheren Stand zurück.'],
    backup_failed: ['Sicherung gescheitert', (n) => `Eine Sicherung scheiterte ${n}-mal in Folge.`],
    node_unreachable: [
      'Peer nicht erreichbar',
      (n) => `Ein Peer der Föderation antwortet seit ${n} s nicht.`,
    ],
    sync_failed: [
      'Abgleich gescheitert',
      (n) => `Der Austausch mit einem Peer scheiterte ${n}-mal in Folge.`,
    ],
    login_lockout: ['Anmeldung gesperrt', () => 'Die Anmeldung ist nach zu vielen Fehlversuchen gesperrt.'],
    key_created: ['Schlüssel angelegt', () => 'Ein API-Schlüssel wurde angelegt.'],
    deadman_warning: ['Totmannschalter', (n) => `${n} % der Zeit des Totmannschalters sind vergangen.`],
    storage_low: ['Speicher knapp', (n) => `${n} % des Datenträgers des Gateways sind belegt.`],
    cpu_temp_high: ['Prozessor heiß', (n, w) => `Der Prozessor hat seit ${w} mindestens ${n} °C.`],
    cert_expiring: ['Zertifikat läuft ab', (n) => `Ein genutztes Zertifikat endet in höchstens ${n} Tagen.`],
    secrets_decrypt_failed: [
      'Geheimnisse unlesbar',
      () => 'Gespeicherte Geheimnisse lassen sich nicht öffnen.',
    ],
    bluetooth_ids: [
      'Verdächtiges Bluetooth-Gerät',
      (n, w) => `Ein unbekanntes Bluetooth-Gerät war ${n}-mal in ${w} verdächtig.`,
    ],
    conntrack_full: [
      'Zu viele Verbindungen',
      () => 'Die Verbindungstabelle lief voll, und die größten Nutzer verloren Einträge.',
    ],
    clock_unsynchronised: ['Uhr nicht gestellt', (_, w) => `Seit ${w} hat kein Zeitserver die Uhr gestellt.`],
  },
}
