// Names that the gateway answers itself, and whom it asks for some others.

import { useGet } from '@/api/query'
import { Page } from '@/components/answer'
import { StateWord } from '@/components/state'
import { Link } from '@/session/link'
import { useText } from '@/text'
import { Forwarders } from './forwarders'
import { Records } from './records'
import { ZoneList } from './zone-list'

export default function Zones() {
  const text = useText()
  return (
    <Page question={text.dns.zones.question} answer={<ZonesSentence />}>
      <ZoneList />
      <Records />
      <Forwarders />
    </Page>
  )
}

function ZonesSentence() {
  const text = useText()
  const { sentence } = text.dns.zones
  const zones = useGet('/dns/zones')
  const forwarders = useGet('/dns/forwarders')
  if (zones.error && !zones.data) return <StateWord state="unknown">{text.common.noData}</StateWord>
  if (!zones.data || !forwarders.data) return <>{text.common.loading}</>
  const own = zones.data.data.filter(
    (zone) => zone.enabled && (zone.type === 'primary' || zone.type === 'secondary'),
  )
  const records = own.reduce((sum, zone) => sum + (zone.records_count ?? 0), 0)
  const secondary = own.filter((zone) => zone.type === 'secondary')
  const failing = secondary.filter((zone) => zone.error).length
  const expired = secondary.filter((zone) => zone.serial === null).length
  return (
    <>
      {own.length === 0 ? sentence.none : <Link to="/dns/zones">{sentence.own(own.length, records)}</Link>}{' '}
      {sentence.forwarders(forwarders.data.data.filter((each) => each.enabled).length)}
      {failing > 0 ? ` ${sentence.failing(failing)}` : null}
      {expired > 0 ? ` ${sentence.expired(expired)}` : null}
    </>
  )
}
