// What is known of a device.

import type { Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { Link } from '@/session/link'
import { Facts, type Fact } from '@/components/facts'
import { Age, Clock } from '@/components/time'
import { useText } from '@/text'
import { DeviceStatusWord } from './devices'

export function DeviceFacts({ device }: { device: Schemas['Device'] }) {
  const text = useText()
  const words = text.devices
  const groups = useGet('/device-groups', {}, { every: 60_000 }).data?.data
  const facts: Fact[] = [
    [words.status, <DeviceStatusWord key="s" status={device.status} />],
    [words.address, device.ips?.join(', ')],
    [
      words.mac,
      <span key="m" className="mono">
        {[device.mac, ...device.macs].filter(Boolean).join(', ') || '-'}
      </span>,
    ],
    [words.hostname, device.hostname],
    [words.vendor, device.vendor],
    [
      words.groups,
      (device.groups ?? []).length > 0
        ? (device.groups ?? []).map((id) => (
            <span key={id}>
              <Link to={`/devices/groups/${id}`}>
                {groups?.find((each) => each.id === id)?.name ?? id}
              </Link>{' '}
            </span>
          ))
        : null,
    ],
    [words.trustClass, device.trust_class],
    [words.privacyClass, device.privacy_class],
    [words.profile, device.profile],
    [words.tags, device.tags.join(', ')],
    [words.firstSeen, device.first_seen ? <Clock key="f" time={device.first_seen} /> : null],
    [words.lastSeen, device.last_seen ? <Age key="l" time={device.last_seen} /> : null],
    [words.notes, device.notes],
  ]
  return <Facts facts={facts} />
}
