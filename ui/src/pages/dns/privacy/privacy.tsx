// Privacy: what leaks by name or by protocol, what is blocked, and the check that proves it.

import { useGet } from '@/api/query'
import { Facts } from '@/components/facts'
import { Page } from '@/components/answer'
import { LoadedSection } from '@/components/section'
import { StateWord } from '@/components/state'
import { Age } from '@/components/time'
import { Link } from '@/session/link'
import { useText } from '@/text'
import { formatNumber, formatTime } from '@/text/format'
import { LeakCheck } from './leak-check'
import { LeakMonitor } from './leak-monitor'
import { Switches } from './switches'
import { totalsOf, WELL_OBSERVED } from './totals'

export default function Privacy() {
  const text = useText()
  return (
    <Page question={text.dns.privacy.question} answer={<PrivacySentence />}>
      <LeakCheck />
      <Switches />
      <Coverage />
      <LeakMonitor />
    </Page>
  )
}

function PrivacySentence() {
  const text = useText()
  const { sentence } = text.dns.privacy
  const monitor = useGet('/privacy/leak-monitor')
  const status = useGet('/privacy/status')
  if (monitor.error || status.error) return <StateWord state="unknown">{sentence.unknown}</StateWord>
  if (!monitor.data || !status.data) return <>{text.common.loading}</>
  const { since, observed_pct, foreign_routers } = monitor.data.data
  const { coverage } = status.data.data
  if (since === null) return <StateWord state="unknown">{sentence.notEnforced}</StateWord>
  const { escaped, stopped } = totalsOf(monitor.data.data)
  const pct = `${formatNumber(observed_pct, 1)} %`
  const from = formatTime(since)
  return (
    <>
      {escaped > 0 ? (
        <a href="#monitor" className="leaks">
          <StateWord state="leak">{sentence.escaped(escaped, from)}</StateWord>
        </a>
      ) : observed_pct >= WELL_OBSERVED ? (
        sentence.none(from, pct)
      ) : (
        sentence.partly(from, pct)
      )}{' '}
      <a href="#monitor">{sentence.stopped(stopped)}</a>{' '}
      <Link to="/devices">{sentence.covered(coverage.protected, coverage.devices_total)}</Link>
      {foreign_routers.length > 0 ? ` ${sentence.routers(foreign_routers.length)}` : null}
    </>
  )
}

function Coverage() {
  const text = useText()
  const { coverage } = text.dns.privacy
  const query = useGet('/privacy/status')
  return (
    <LoadedSection title={coverage.title} hint={coverage.hint} query={query}>
      {(status) => (
        <Facts
          className="kv"
          facts={[
            [coverage.protected, coverage.ofAll(status.coverage.protected, status.coverage.devices_total)],
            [coverage.exempt, coverage.ofAll(status.coverage.exempt, status.coverage.devices_total)],
            [coverage.risk, coverage.risks[status.risk]],
            [coverage.lists, coverage.listsValue(status.lists.doh_ips, status.lists.doh_domains)],
            [
              coverage.updated,
              status.lists.updated ? <Age key="updated" time={status.lists.updated} /> : coverage.builtin,
            ],
          ]}
        />
      )}
    </LoadedSection>
  )
}
