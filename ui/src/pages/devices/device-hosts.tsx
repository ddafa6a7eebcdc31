// The hosts with a MAC address of a device, as they were observed on the network.

import type { Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { Link } from '@/session/link'
import { HostFacts } from '@/components/hosts/host-facts'
import { nameOf } from '@/components/hosts/hosts'
import { Loaded, Section } from '@/components/section'
import { useText } from '@/text'

export function DeviceHosts({ device }: { device: Schemas['Device'] }) {
  const text = useText()
  const words = text.hosts
  const query = useGet('/hosts', { query: { device_id: device.id } }, { every: 5000 })
  const isNameless = device.mac === null && device.macs.length === 0
  return (
    <Section title={words.ofDevice} hint={words.ofDeviceHint}>
      {isNameless ? (
        <p className="dim">{words.ofDeviceNoMac}</p>
      ) : (
        <Loaded query={query} empty={<p className="dim">{words.ofDeviceNone}</p>}>
          {(hosts) =>
            hosts.map((host) => (
              <div key={host.id}>
                {hosts.length > 1 ? (
                  <h3 className="sub">
                    <Link to={`/devices/hosts/${host.id}`}>{nameOf(host)}</Link>
                  </h3>
                ) : null}
                <HostFacts host={host} />
              </div>
            ))
          }
        </Loaded>
      )}
    </Section>
  )
}
