import type { Text } from '..'

const group = (n: number) => String(n).replace(/\B(?=(\d{3})+(?!\d))/g, ' ')
const packets = (n: number) => (n === 1 ? '1 Paket' : `${group(n)} Pakete`)

export const privacy: Text['dns']['privacy'] = {
  label: 'Privatsphäre',
  question: 'Gelangt etwas nach außen, über Namen oder Protokolle?',
  sentence: {
    unknown: 'Nichts ist bekannt: Die Zähler des Gateways konnten nicht gelesen werden.',
    notEnforced: 'Nichts ist bekannt: Auf diesem Host wird nichts durchgesetzt, also auch nichts gezählt.',
    escaped: (n, since) =>
      `${packets(n)} ${n === 1 ? 'gelangte' : 'gelangten'} seit ${since} an der Ausgangskontrolle vorbei nach außen.`,
    none: (since, pct) =>
      `Kein weitergeleitetes Paket gelangte seit ${since} an der Ausgangskontrolle vorbei, beobachtet in ${pct} der Zeit.`,
    partly: (since, pct) =>
      `Seit ${since} wurde kein Paket gesehen, das an der Ausgangskontrolle vorbei gelangte, beobachtet wurde aber nur in ${pct} der Zeit.`,
    stopped: (n) =>
      n === 0
        ? 'Nichts musste aufgehalten werden.'
        : `${packets(n)} ${n === 1 ? 'wurde' : 'wurden'} aufgehalten.`,
    covered: (isProtected, all) =>
      all === 0
        ? 'Kein Gerät ist bekannt.'
        : isProtected === all
          ? `Alle ${group(all)} Geräte können nur das Gateway nach Namen fragen.`
          : `${group(all - isProtected)} von ${all === 1 ? '1 Gerät' : `${group(all)} Geräten`} ${all - isProtected === 1 ? 'kann' : 'können'} andere Resolver fragen.`,
    routers: (n) =>
      n === 1
        ? 'Ein anderer Router bietet dem Netz IPv6 an.'
        : `${group(n)} andere Router bieten dem Netz IPv6 an.`,
  },
  coverage: {
    title: 'Abdeckung',
    hint: 'Wer Namen am Gateway vorbei auflösen kann.',
    protected: 'Geräte, die keinen anderen Resolver fragen können',
    exempt: 'Geräte ohne jede Sperre',
    risk: 'Risiko',
    risks: {
      low: 'gering: Jeder Host ist geschützt, auch unbekannte Geräte',
      medium: 'mittel: Jedes Gerät hat Sperren',
      high: 'hoch: Manche Geräte haben keine Sperre',
    },
    lists: 'Bekannte öffentliche Resolver',
    listsValue: (addresses, domains) => `${group(addresses)} Adressen und Netze, ${group(domains)} Domains`,
    updated: 'Neueste Liste davon',
    builtin: 'nur eingebaute',
    ofAll: (n, all) => `${group(n)} von ${group(all)}`,
  },
  switches: {
    title: 'Schalter',
    hint: 'Das Strengere gilt: Ein Gerät hat eine Sperre, wenn es selbst, eine Gruppe, seine Klasse oder alle sie haben.',
    scope: 'Für',
    everyone: 'alle, auch unbekannte Geräte',
    classOf: (name) => `Privatsphäre-Klasse ${name}`,
    groupOf: (name) => `Gruppe ${name}`,
    deviceOf: (name) => `Gerät ${name}`,
    wider: 'Gilt auch für alle.',
    done: (name) => `${name} ist geändert.`,
    classes: 'Privatsphäre-Klassen',
    forceDns: {
      name: 'DNS erzwingen',
      on: 'Das Gateway beantwortet unverschlüsselte DNS-Anfragen an andere Resolver. DNS über TLS und QUIC dorthin wird abgewiesen.',
      off: 'Programme können jeden Resolver fragen. Dessen Antworten gehen am Filter vorbei.',
    },
    blockDoh: {
      name: 'DNS über HTTPS sperren',
      on: 'Bekannte öffentliche Resolver sind über HTTPS nicht erreichbar, weder über Namen noch über Adressen.',
      off: 'Browser können Namen über HTTPS bei jedem Resolver auflösen, am Filter vorbei.',
    },
    blockIpv6: {
      name: 'IPv6 sperren',
      on: 'Kein IPv6 geht ins Internet, auch nicht innerhalb von IPv4, und AAAA-Einträge werden entfernt.',
      off: 'IPv6 geht dorthin, wohin die Richtlinie des Geräts es schickt.',
    },
    webrtc: {
      name: 'WebRTC (STUN und TURN)',
      off: 'Browser können über STUN die öffentliche Adresse eines Uplinks erfahren und weitergeben.',
      tunnel:
        'STUN geht nur dorthin, wohin die Richtlinie des Geräts es schickt, nie über die Standardroute.',
      block: 'STUN und TURN werden verworfen. Anrufe im Browser können scheitern.',
      options: { off: 'Aus', tunnel: 'Tunnel', block: 'Sperren' },
    },
    dnsMode: {
      name: 'DNS-Modus',
      off: 'Jeder Client wählt seinen Resolver; für kein Gerät wird etwas erzwungen.',
      device: 'Erzwungen für Geräte, deren Privatsphäre-Klasse es verlangt.',
      system: 'Erzwungen für alle, auch für das Gateway selbst.',
      options: { off: 'Aus', device: 'Je Gerät', system: 'Alle' },
    },
    others: 'Weitere Sperren dieses Bereichs',
    blockDot: 'DNS über TLS und QUIC',
    blockQuic: 'QUIC',
    forceNtp: 'NTP vom Gateway beantwortet',
    blocked: 'gesperrt',
    notBlocked: 'nicht gesperrt',
  },
  monitor: {
    title: 'Leck-Überwachung',
    hint: (since, pct) => `Pakete seit ${since}, beobachtet in ${pct} der Zeit.`,
    columns: {
      policy: 'Richtlinie',
      escaped: 'Entkommen',
      wrongEgress: 'Von der Kontrolle verworfen',
      dns: 'Anderes DNS',
      doh: 'DoH',
      stun: 'STUN',
      ipv6: 'IPv6',
      quic: 'QUIC',
      discovery: 'Suche im LAN',
      ntp: 'NTP',
      bytes: 'Bytes',
    },
    noPolicy: 'keine Richtlinie',
    legend:
      'Entkommene Pakete gelangten an der Kontrolle vorbei: Jedes ist ein Leck. Alle anderen Spalten wurden aufgehalten, NTP hat das Gateway beantwortet.',
    empty: 'Noch wurde nichts gezählt.',
    events: 'Letzte Ereignisse',
    eventsHint: 'Von der Ausgangskontrolle Verworfenes und eine Auswahl erster Pakete gesperrter Flüsse.',
    noEvents: 'Noch wurde kein Paket verworfen.',
    eventColumns: {
      device: 'Gerät',
      policy: 'Richtlinie',
      from: 'Von',
      to: 'Nach',
      protocol: 'Protokoll',
      action: 'Aktion',
      reason: 'Grund',
      size: 'Bytes',
    },
    guard: 'Ausgangskontrolle',
    routers: 'Fremde Router',
    routersHint: 'Hosts können IPv6 durch sie schicken, am Gateway vorbei.',
    noRouters: 'Kein anderer Router meldet sich im LAN.',
    routerColumns: {
      address: 'Router',
      interface: 'Schnittstelle',
      prefixes: 'Präfixe',
      seen: 'Zuletzt gesehen',
      until: 'Benutzt bis',
    },
  },
  check: {
    title: 'Leck-Prüfung',
    hint: 'Sendet Pakete wie ein Gerät und beobachtet an jeder Schnittstelle, wo sie hinausgehen. Dritte sehen sie nicht.',
    as: 'Als',
    stranger: 'ein Host, den das Gateway nicht kennt',
    checks: 'Prüfungen',
    all: 'Alle Prüfungen',
    names: {
      dns: 'DNS',
      ipv4: 'IPv4',
      ipv6: 'IPv6',
      webrtc: 'WebRTC',
      doh: 'DNS über HTTPS',
      quic: 'QUIC',
      route: 'Route',
    },
    run: 'Leck-Prüfung starten',
    running: (n, seconds) => `${n === 1 ? '1 Prüfung läuft' : `${n} Prüfungen laufen`}, ${seconds} s.`,
    verdicts: { pass: 'bestanden', fail: 'Leck', inconclusive: 'nicht schlüssig' },
    result: (verdict, subject, passed, all) =>
      `${verdict === 'pass' ? 'Jede Probe ging, wohin sie darf' : verdict === 'fail' ? 'Leck' : 'Nicht schlüssig'}: ${passed} von ${all} Prüfungen bestanden für ${subject}.`,
    columns: {
      check: 'Prüfung',
      result: 'Ergebnis',
      expected: 'Erwartet',
      observed: 'Beobachtet',
      packets: 'Pakete hinaus über',
      exit: 'Adresse außen',
    },
    nonePackets: 'keine',
    risks: 'Was die Prüfung nicht ausschließen kann',
    noRisks: 'Die Prüfung nennt kein verbleibendes Risiko.',
    at: (time) => `Geprüft ${time}.`,
    empty: 'In diesem Tab wurde noch keine Prüfung gestartet.',
    command: 'gateway-ctl leak-check',
  },
}
