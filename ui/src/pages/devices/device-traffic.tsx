// Bytes of a device by egress, and its destinations.

import type { Schemas } from '@/api/client'
import { TopSection } from '@/components/flows/top-section'
import { UsageSection } from '@/components/flows/usage-section'
import { Link } from '@/session/link'
import { useText } from '@/text'

export function DeviceTraffic({ device }: { device: Schemas['Device'] }) {
  const words = useText().flows
  return (
    <>
      <UsageSection device={device.id} groups={['egress', 'policy']} />
      <TopSection
        by="domain"
        device={device.id}
        title={words.top.talkedTo}
        actions={
          <Link className="link" to="/activity/flows" search={{ device: device.id }}>
            {words.allOf(device.name)}
          </Link>
        }
      />
    </>
  )
}
