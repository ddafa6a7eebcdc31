// The page of alerts, and the pages of what they are about.

import { isSupported } from '@/api/operations'

/** The page that lists the alerts; that of the changes if the gateway keeps none. */
export const ALERTS = isSupported('GET /alerts/active') ? '/activity/alerts' : '/activity'

/** Pages of single objects, by the type of the subject. */
const PAGES: Partial<Record<string, string>> = {
  device: '/devices',
  interface: '/network/interfaces',
  routing_policy: '/policies',
  tunnel: '/paths/tunnels',
}

/** Pages that list what has no page of its own. */
const LISTS: Partial<Record<string, string>> = {
  api_key: '/system',
  backup: '/system/backups',
  certificate: '/system/security',
  encrypted_storage: '/system/storage',
  dataplane: '/activity/drift',
  dhcp_pool: '/network/dhcp',
  dhcp_server: '/network/dhcp',
  dns_list: '/dns/lists',
  dns_upstream: '/dns/upstreams',
  exception: '/policies/exceptions',
  host: '/devices/hosts',
  router: '/network/ipv6',
  secret: '/system/security',
  snapshot: '/system/snapshots',
  uplink: '/network',
}

interface About {
  resource_type: string
  resource_id: string | null
  device_id: string | null
}

/** The page of what an alert is about, if it has one. */
export function pageOf({
  resource_type: type,
  resource_id: id,
  device_id: device,
}: About): string | undefined {
  const page = PAGES[type]
  if (page !== undefined && id !== null) return `${page}/${encodeURIComponent(id)}`
  return device === null ? LISTS[type] : `/devices/${device}`
}
