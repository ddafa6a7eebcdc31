// What raises alerts, in words, and when it did last.

import { useMemo } from 'react'
import { call, client, type Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { Page } from '@/components/answer'
import { Button } from '@/components/button'
import { LoadedSection } from '@/components/section'
import { StateWord } from '@/components/state'
import { Table } from '@/components/table'
import { TwoLines } from '@/components/two-lines'
import { useAction } from '@/components/action'
import { Age } from '@/components/time'
import { useText } from '@/text'
import { formatAge } from '@/text/format'
import { lastOf } from './alert-groups'

type Rule = Schemas['AlertRule']

export default function AlertRules() {
  const text = useText()
  const t = text.activity.alerts
  const rules = useGet('/alerts/rules')
  const list = rules.data?.data
  return (
    <Page
      question={text.alerts.rulesQuestion}
      answer={
        list ? t.sentence(list.filter((rule) => rule.enabled).length, list.length) : text.common.loading
      }
    >
      <LoadedSection title={t.rules} query={rules} lines={8}>
        {(all) => <Rules rules={all} />}
      </LoadedSection>
    </Page>
  )
}

/** Alerts that are searched for the last one of each kind. */
const MOST = 1000

function Rules({ rules }: { rules: Rule[] }) {
  const text = useText()
  const t = text.activity.alerts
  const raised = useGet('/alerts', { query: { limit: MOST } }, { every: 60_000 }).data?.data
  const last = useMemo(() => lastOf(raised ?? []), [raised])
  const toggle = useAction(
    (rule: Rule) =>
      call(
        client.PUT('/alerts/rules/{id}', {
          params: { path: { id: rule.id } },
          body: { ...rule, enabled: !rule.enabled },
        }),
      ),
    () => text.common.saved,
  )
  return (
    <Table
      label={t.rules}
      rows={rules}
      id={(rule) => rule.id}
      columns={[
        { head: t.rule, bare: true, cell: (rule) => <RuleWords rule={rule} /> },
        { head: t.severity, cell: (rule) => text.alerts.severities[rule.severity] },
        {
          head: text.alerts.lastFired,
          cell: (rule) => {
            const time = last.get(rule.id)
            return time === undefined ? raised ? text.alerts.never : '-' : <Age time={time} />
          },
        },
        {
          head: text.common.enabled,
          cell: (rule) => (
            <StateWord state={rule.enabled ? 'ok' : 'idle'}>
              {rule.enabled ? text.common.on : text.common.off}
            </StateWord>
          ),
        },
        {
          head: <span className="sr">{text.common.actions}</span>,
          numeric: true,
          cell: (rule) => (
            <Button size="small" needs="operator" onClick={() => toggle.run(rule)}>
              {rule.enabled ? t.turnOff : t.turnOn}
            </Button>
          ),
        },
      ]}
    />
  )
}

/** What a rule means, with its numbers. */
function RuleWords({ rule }: { rule: Rule }) {
  const text = useText()
  const words = text.alerts
  const [name, means] = words.kinds[rule.id]
  const { devices, groups } = rule.scope
  const said = [
    means(rule.threshold, formatAge(rule.window_sec, text)),
    rule.cooldown_sec > 0 ? words.returns(formatAge(rule.cooldown_sec, text)) : '',
    rule.auto_resolve ? '' : words.stays,
    devices.length + groups.length > 0 ? words.scoped(devices.length, groups.length) : '',
  ]
  return (
    <TwoLines second={said.filter(Boolean).join(' ')}>
      <span className="med">{name}</span>
    </TwoLines>
  )
}
