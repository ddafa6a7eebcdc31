// A query about the path of a packet, as an address holds it: /devices/<id>?to=203.0.113.7&port=443&protocol=udp.

import type { Schemas } from '@/api/client'
import type { Search } from '@/session/search-params'

/** The packet to ask about. All but the device may be left out. */
export interface PacketQuery {
  device_id: string
  destination?: string
  port?: number
  protocol?: Schemas['ProtocolInput']
  family?: Schemas['FamilyInput']
  /** By the plan that was in force then; by that of now if not given. */
  at?: string
}

const PROTOCOLS: readonly string[] = ['tcp', 'udp', 'icmp']
const FAMILIES: readonly string[] = ['ipv4', 'ipv6']

/** Reads the query of an address. What makes no sense is left out. */
export function packetOf(device: string, search: Search): PacketQuery {
  const query: PacketQuery = { device_id: device }
  const destination = (search.to ?? search.domain ?? '').trim()
  if (destination) query.destination = destination
  const port = Number(search.port)
  if (Number.isInteger(port) && port > 0 && port < 65_536) query.port = port
  if (search.protocol && PROTOCOLS.includes(search.protocol))
    query.protocol = search.protocol as PacketQuery['protocol']
  if (search.family && FAMILIES.includes(search.family)) query.family = search.family as PacketQuery['family']
  if (search.at && !Number.isNaN(Date.parse(search.at))) query.at = search.at
  return query
}

/** The same query in a terminal. The client asks about a device only; the rest needs the API. */
export function commandOf(query: PacketQuery, device: string, origin: string): string {
  if (Object.keys(query).length === 1) return `gateway-ctl evaluate ${quoted(device)}`
  return `curl -X POST ${origin}/api/v1/policy/evaluate -H 'Content-Type: application/json' -d ${quoted(JSON.stringify(query))}`
}

/** A word of a shell. */
export function quoted(word: string): string {
  return /^[\w.:@%+=,/-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
}
