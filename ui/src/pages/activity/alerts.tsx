// The alerts: those that are open, by their cause, and those that were resolved.

import { useGet } from '@/api/query'
import { answerOf, Page } from '@/components/answer'
import { Empty, LoadedSection } from '@/components/section'
import { useText } from '@/text'
import { AlertRow } from './alert-row'
import { groupsOf, type Alert } from './alert-groups'
import { ResolvedAlerts } from './resolved-alerts'

export default function Alerts() {
  const text = useText()
  const words = text.alerts
  const open = useGet('/alerts/active', {}, { every: 5000 })
  return (
    <Page question={words.question} answer={answerOf(open, text, (list) => sentenceOf(list, words))}>
      <LoadedSection
        title={words.open}
        hint={words.openHint}
        query={open}
        lines={6}
        empty={<Empty command="gateway-ctl alerts">{words.none}</Empty>}
      >
        {(alerts) => (
          <ul className="rows rows--alert">
            {groupsOf(alerts).map((group) => (
              <AlertRow key={group.alert.id} {...group} />
            ))}
          </ul>
        )}
      </LoadedSection>
      <ResolvedAlerts />
    </Page>
  )
}

function sentenceOf(alerts: readonly Alert[], words: ReturnType<typeof useText>['alerts']): string {
  const groups = groupsOf(alerts)
  const acknowledged = groups.filter(({ alert }) => alert.status === 'acknowledged').length
  return words.sentence(groups.length, alerts.length - groups.length, acknowledged)
}
