// Sums over the counters of the leak monitor.

import type { Schemas } from '@/api/client'

type Monitor = Schemas['LeakMonitor']

export interface Totals {
  escaped: number
  /** Packets that were stopped; NTP is answered, not stopped. */
  stopped: number
}

export function totalsOf(monitor: Monitor): Totals {
  let escaped = 0
  let stopped = 0
  for (const each of monitor.counters) {
    escaped += each.escaped_packets
    stopped +=
      each.wrong_egress_packets +
      each.dns_bypass +
      each.doh_hits +
      each.stun_blocked +
      each.ipv6_blocked +
      each.quic_blocked +
      each.discovery_dropped
  }
  return { escaped, stopped }
}

/** Share in percent below which "none seen" says little. */
export const WELL_OBSERVED = 99.5

const PROTOCOLS: Record<number, string> = { 1: 'ICMP', 6: 'TCP', 17: 'UDP', 41: 'IPv6', 58: 'ICMPv6' }

export function protocolName(protocol: number): string {
  return protocol === 0 ? '-' : (PROTOCOLS[protocol] ?? String(protocol))
}

/** An address with its port: `[2001:db8::1]:443`. */
export function endpoint(address: string | null, port: number): string {
  if (address === null) return '-'
  if (port === 0) return address
  return address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`
}
