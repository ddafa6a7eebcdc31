// Bytes of the devices by egress, their destinations and the countries of them.

import { Page } from '@/components/answer'
import { TopSection } from '@/components/flows/top-section'
import { UsageSection } from '@/components/flows/usage-section'
import { useText } from '@/text'

export default function Traffic() {
  const words = useText().flows
  return (
    <Page question={words.traffic.question} answer={words.traffic.answer}>
      <UsageSection groups={['egress', 'policy', 'device']} />
      <TopSection by="device" title={words.top.devices} />
      <TopSection by="domain" title={words.top.domains} />
      <TopSection by="country" title={words.top.countries} />
    </Page>
  )
}
