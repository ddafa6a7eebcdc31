// What was observed of a host. What is not known is said so.

import { Facts } from '@/components/facts'
import { StateWord } from '@/components/state'
import { Age, Clock } from '@/components/time'
import { useText } from '@/text'
import { HostPath, HostRate, HostTags } from './host-words'
import type { Host } from './hosts'

export function HostFacts({ host }: { host: Host }) {
  const text = useText()
  const words = text.hosts
  const unknown = <span className="dim">{words.unknown}</span>
  return (
    <Facts
      facts={[
        [
          words.state,
          host.online ? (
            <StateWord state="ok">{words.online}</StateWord>
          ) : (
            <StateWord state="idle">{words.offline}</StateWord>
          ),
        ],
        [
          words.mac,
          <>
            <span className="mono">{host.mac}</span> <HostTags host={host} />
          </>,
        ],
        [words.addresses, host.ips.length > 0 ? host.ips.toReversed().join(', ') : unknown],
        [
          words.names,
          host.names.length > 0 ? (
            <span title={words.namesHint}>
              {host.names.map(({ name, from }) => `${name} (${words.nameFrom[from]})`).join(', ')}
            </span>
          ) : (
            unknown
          ),
        ],
        [words.vendor, host.vendor ?? <span className="dim">{words.vendorUnknown}</span>],
        [words.vendorClass, host.vendor_class ?? unknown],
        [words.interface, host.vlan === null ? host.interface : `${host.interface}, VLAN ${host.vlan}`],
        [words.firstSeen, <Clock key="first" time={host.first_seen} />],
        [words.lastSeen, <Age key="last" time={host.last_seen} />],
        [words.answers, host.confirmed ? text.common.yes : words.unconfirmed],
        [words.way, <HostPath key="way" host={host} />],
        [words.rate, <HostRate key="rate" host={host} />],
      ]}
    />
  )
}
