// Checks of functions: reasons and remedies, by code. The English of the gateway stays where a program or the kernel says it.

import type { CheckCode, CheckText, Params, Piece } from '../phrase'

const english = (p: Params, name: string): Piece => ({ english: p.text(name) })
const texts =
  (...pieces: Piece[]): (() => Piece[]) =>
  () =>
    pieces
const nothing = texts()

const holder = (p: Params) =>
  p.has('program') ? `${p.text('program')} (Prozess ${p.text('pid')})` : 'ein anderes Programm'
const protocol = (p: Params) => p.text('protocol').toUpperCase()
const stop = (p: Params): Piece[] =>
  p.has('program')
    ? [`${p.text('program')} beenden (systemctl disable --now ${p.text('program')})`]
    : ['das Programm beenden; ss -lpn zeigt es']

/** Name of a table of the kernel. */
const TABLES: Record<string, string> = {
  conntrack: 'die Verbindungstabelle',
  neighbours: 'die Nachbartabelle',
  neighbours_ipv6: 'die Nachbartabelle von IPv6',
  flows_ipv4: 'die Flow-Tabelle von IPv4',
  flows_ipv6: 'die Flow-Tabelle von IPv6',
  fast_path_ipv4: 'die Tabelle des schnellen Pfads von IPv4',
  fast_path_ipv6: 'die Tabelle des schnellen Pfads von IPv6',
}
const table = (p: Params) => TABLES[p.text('table')] ?? p.text('table')
const fill = (p: Params) => `${p.text('entries')} von ${p.text('limit')} Einträgen`
const find = texts('den Host finden, der sie füllt: conntrack -L, ip neighbour')

export const checks: Record<CheckCode, CheckText> = {
  ok: { message: texts('funktioniert'), remedy: nothing },
  not_checked: {
    message: (p) => ['noch nicht geprüft: ', english(p, 'reason')],
    remedy: texts('warten; bleibt es so, das Protokoll des Daemons ansehen'),
  },
  port_taken: {
    message: (p) => [`${holder(p)} belegt ${protocol(p)}-Port ${p.text('address')}`],
    remedy: stop,
  },
  port_shared: {
    message: (p) => [
      `${holder(p)} hört auch auf ${protocol(p)} ${p.text('address')} und beantwortet einen Teil der Anfragen`,
    ],
    remedy: stop,
  },
  not_bound: {
    message: (p) => [`${p.text('address')} kann nicht belegt werden: `, english(p, 'error')],
    remedy: texts('eine Adresse einstellen, die dieses Gerät hat'),
  },
  not_running: {
    message: (p) => [`${p.text('service')} läuft nicht: `, english(p, 'error')],
    remedy: texts('das Protokoll des Daemons ansehen und ihn neu starten'),
  },
  no_answer: {
    message: (p) => [
      `eine DNS-Anfrage über die LAN-Schnittstelle ${p.text('interface')} bekam keine Antwort: `,
      english(p, 'detail'),
    ],
    remedy: texts('nach fremden Firewall-Regeln suchen, die Port 53 verwerfen: nft list ruleset'),
  },
  no_upstream: {
    message: texts('kein Upstream ist eingestellt, deshalb werden öffentliche Namen nicht aufgelöst'),
    remedy: texts('dns.upstream_servers einstellen, zum Beispiel auf ["9.9.9.9", "149.112.112.112"]'),
  },
  upstream_down: {
    message: (p) => [`der Upstream ${p.text('upstream')} antwortet nicht: `, english(p, 'error')],
    remedy: texts('unter DNS, Upstreams nachsehen, und ihn ersetzen, wenn es ihn nicht mehr gibt'),
  },
  all_upstreams_down: {
    message: (p) => [`kein Upstream antwortet (${p.text('upstreams')}): `, english(p, 'error')],
    remedy: texts('den Uplink oder Tunnel prüfen, der die Anfragen trägt, oder andere Upstreams einstellen'),
  },
  upstream_problem: {
    message: (p) => ['ein Upstream ist so nicht nutzbar: ', english(p, 'problem')],
    remedy: texts('dns.upstream_servers berichtigen'),
  },
  network_not_served: {
    message: (p) => ['ein Netz bekommt keine Adressen: ', english(p, 'reason')],
    remedy: texts('DHCP, das Segment oder die Adresse der Schnittstelle berichtigen'),
  },
  pool_exhausted: {
    message: (p) => [`im Bereich ${p.text('pool')} ist keine Adresse frei`],
    remedy: texts('den Bereich vergrößern oder lease_sec verkürzen'),
  },
  other_dhcp_server: {
    message: (p) => ['ein anderer Server im LAN vergibt Adressen: ', english(p, 'server')],
    remedy: texts('einen der beiden Server ausschalten'),
  },
  leases_not_stored: {
    message: (p) => ['die Leases können nicht gespeichert oder gelesen werden: ', english(p, 'error')],
    remedy: texts(
      'auf dem Datenträger des Zustandsverzeichnisses Platz schaffen oder es beschreibbar machen',
    ),
  },
  clock_not_synchronised: {
    message: texts('die Uhr des Gateways ist nicht synchron, deshalb nehmen Hosts seine Zeit nicht an'),
    remedy: texts('systemd-timesyncd oder chrony einen Zeitserver erreichen lassen'),
  },
  table_filling: {
    message: (p) => [`${table(p)} ist fast voll (${fill(p)})`],
    remedy: find,
  },
  table_full: {
    message: (p) => [`${table(p)} ist voll (${fill(p)}): neue Verbindungen oder Hosts scheitern`],
    remedy: find,
  },
  flows_unrecorded: {
    message: (p) => [
      `${p.text('packets')} Pakete seit der letzten Prüfung gehören zu Flows, die nicht verzeichnet sind, weil ihre Hosts zu viele beginnen`,
    ],
    remedy: texts('den Host in /metrics finden (gateway_unrecorded_flow_packets) und stoppen'),
  },
  storage_low: {
    message: texts(
      'der Speicherplatz wird knapp: Anfrageprotokoll und Kopien der Listen werden nicht mehr geschrieben',
    ),
    remedy: texts('auf dem Datenträger von state_dir Platz schaffen'),
  },
  storage_full: {
    message: texts('der Speicherplatz ist voll: Änderungen werden abgelehnt'),
    remedy: texts('auf dem Datenträger von state_dir Platz schaffen'),
  },
  storage_locked: {
    message: (p) => [`wartet auf den verschlüsselten Speicher: ${p.text('waiting')}`],
    remedy: texts('ihn mit seiner Passphrase öffnen (gateway-ctl storage unlock)'),
  },
  memory_low: {
    message: (p) => [`nur ${p.text('free_percent')} % des Arbeitsspeichers sind frei`],
    remedy: texts('andere Programme beenden oder kleinere Listen nutzen'),
  },
  file_descriptors_low: {
    message: texts('90 % der Dateideskriptoren sind in Gebrauch'),
    remedy: texts('LimitNOFILE der Unit gatewayd.service erhöhen'),
  },
  file_descriptors_full: {
    message: texts('keine Verbindung, kein Socket und keine Datei kann mehr geöffnet werden'),
    remedy: texts('LimitNOFILE der Unit gatewayd.service erhöhen'),
  },
  prefix_not_delegated: {
    message: (p) => [`${p.text('uplink')} bekommt kein IPv6-Präfix: `, english(p, 'error')],
    remedy: texts('den Anbieter fragen, ob er Präfixe delegiert, oder die Delegierung ausschalten'),
  },
  backup_failed: {
    message: (p) => ['die letzte Sicherung ist fehlgeschlagen: ', english(p, 'error')],
    remedy: texts('unter System, Sicherungen nachsehen'),
  },
  backup_target_unreachable: {
    message: (p) => ['das Ziel der Sicherungen ist nicht erreichbar: ', english(p, 'error')],
    remedy: texts('das Ziel unter System, Sicherungen berichtigen'),
  },
  alerts_not_delivered: {
    message: (p) => [`Alarme erreichen den Empfänger ${p.text('receiver')} nicht: `, english(p, 'error')],
    remedy: texts('den Empfänger unter Aktivität, Alarme berichtigen'),
  },
  drift: {
    message: (p) => ['der Kernel weicht vom Plan ab: ', english(p, 'reason')],
    remedy: texts(
      'unter Aktivität, Abweichung nachsehen; das Programm beenden, das nftables, Regeln oder BPF-Programme ändert',
    ),
  },
  lan_without_ethernet: {
    message: texts('eine LAN-Schnittstelle hat kein Ethernet, deshalb wird von ihr nichts weitergeleitet'),
    remedy: texts('eine Ethernet-Schnittstelle als LAN nutzen'),
  },
  task_failed: {
    message: (p) => ['eine Aufgabe des Daemons ist gestorben: ', english(p, 'failure')],
    remedy: texts('das Protokoll des Daemons ansehen; er startet die Aufgabe von selbst neu'),
  },
}
