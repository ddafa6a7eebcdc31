// The objects that refer to another one, by their names, each with a link to its page.

import type { ReactNode } from 'react'
import type { Schemas } from '@/api/client'
import { Link } from '@/session/link'
import { useText } from '@/text'

/** An object that refers to another one, with what becomes of it when that is deleted. */
export type Referring = Schemas['ReferringObject']

/** Pages of single objects, by their collection. */
const PAGES: Partial<Record<string, string>> = {
  bridges: '/paths/bridges',
  chains: '/policies/chains',
  device_groups: '/devices/groups',
  devices: '/devices',
  presets: '/policies/presets',
  privacy_classes: '/policies/classes',
  profiles: '/policies/profiles',
  proxies: '/paths/proxies',
  routing_policies: '/policies',
  segments: '/network/segments',
  test_definitions: '/activity/tests',
  trust_classes: '/devices/trust-classes',
  tunnels: '/paths/tunnels',
}

/** Pages that list objects without a page of their own. */
const LISTS: Partial<Record<string, string>> = {
  alert_rules: '/activity/alert-rules',
  'alerts.email': '/activity/alert-receivers',
  'alerts.mqtt': '/activity/alert-receivers',
  'alerts.webhook': '/activity/alert-receivers',
  dhcp_reservations: '/network/dhcp',
  dns_filter_rules: '/dns/lists',
  dns_forwarders: '/dns/zones',
  dns_records: '/dns/zones',
  dns_rewrites: '/dns/lists',
  dns_zones: '/dns/zones',
  exceptions: '/policies/exceptions',
  splitting_endpoints: '/paths/splitting',
}

interface Props {
  objects: readonly Referring[]
  /** What happens to an object, if it is not what the gateway says. */
  fate?: (object: Referring) => ReactNode
}

export function ReferringObjects({ objects, fate }: Props) {
  const text = useText()
  const { fates } = text.common
  const usual = ({ id, when_deleted: then, hops }: Referring): ReactNode => {
    if (id === null) return fates.setting
    return then === 'other_hops' ? fates.other_hops(hops.join(', ')) : fates[then]
  }
  return (
    <div className="referring">
      <p className="med">{text.common.usedBy(objects.length)}</p>
      <ul className="rows">
        {objects.map((object) => {
          const { collection, id, name } = object
          const page = PAGES[collection]
          const to = page ? `${page}/${id}` : LISTS[collection]
          return (
            <li key={`${collection} ${id}`}>
              <span>
                {text.kinds[collection]?.[0] ?? collection}{' '}
                {to ? (
                  <Link className="med" to={to}>
                    {name}
                  </Link>
                ) : (
                  <b className="med">{name}</b>
                )}
                <span className="mid"> {fate?.(object) ?? usual(object)}</span>
              </span>
            </li>
          )
        })}
      </ul>
    </div>
  )
}
