// Hosts that were observed on the LAN, and how they are named.

import type { Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import type { State } from '@/components/state'
import type { Text } from '@/text'

export type Host = Schemas['ObservedHost']

/** Hosts that a page reads at most. The daemon returns those first that are online. */
const MOST = 1000

/** Pause between two reads in milliseconds. An alert for a new host makes it be read at once. */
const EVERY = 5000

/** All hosts, also those that never answered and may be forged. */
export const useHosts = () => useGet('/hosts', { query: { limit: MOST } }, { every: EVERY })

/** Hosts that have answered the gateway. A flood of forged addresses is not among them. */
export const useAnsweringHosts = () =>
  useGet('/hosts', { query: { limit: MOST, confirmed: 'true' } }, { every: EVERY })

/** Number of all hosts; undefined while it is not known. */
export function useHostCount(): number | undefined {
  const answer = useHosts().data
  return answer && Number(answer.headers.get('X-Total-Count') ?? answer.data.length)
}

/** The hosts that have answered and are no device; undefined while that is not known. */
export function useStrangers(): Host[] | undefined {
  return useAnsweringHosts().data?.data.filter((host) => host.device_id === null)
}

/** The name of a host: the one that an own zone or a reservation gives it, the one it gives itself, else its vendor with the end of the MAC address. The daemon's adoption names it so as well. */
export function nameOf(host: Pick<Host, 'names' | 'vendor' | 'mac'>): string {
  for (const from of ['dns', 'dhcp', 'mdns', 'ssdp'])
    for (const name of host.names) if (name.from === from) return name.name
  return host.vendor ? `${host.vendor} ${host.mac.slice(-8)}` : host.mac
}

/** The address by which a host is shown: the newest IPv4 address, else the newest one. */
export function addressOf({ ips }: Pick<Host, 'ips'>): string | undefined {
  return ips.findLast((ip) => ip.includes('.')) ?? ips.at(-1)
}

/** All words by which a host is found. */
export function wordsOf(host: Host): string {
  return [
    nameOf(host),
    ...host.names.map((each) => each.name),
    host.mac,
    ...host.ips,
    host.vendor,
    host.vendor_class,
    host.interface,
  ]
    .filter(Boolean)
    .join(' ')
}

/** A host in one line for a choice. */
export function lineOf(host: Host, text: Text): string {
  const name = nameOf(host)
  const rest = [
    addressOf(host),
    name.startsWith(host.vendor ?? host.mac) ? null : host.vendor,
    name === host.mac ? null : host.mac,
  ]
  return [name, ...rest.filter(Boolean), host.online ? text.hosts.online : null].filter(Boolean).join(', ')
}

/** How the way of a host is drawn. What is not forwarded is no state of the internet. */
export function pathState(host: Pick<Host, 'path'>): State {
  const treatment = host.path?.treatment
  if (!treatment) return 'idle'
  if (treatment === 'through_policy') return 'ok'
  return treatment === 'blocked' ? 'blocked' : 'direct'
}
