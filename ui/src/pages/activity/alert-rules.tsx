// What raises alerts, in words, when it did last, and where alerts are sent.

import { useMemo, useState } from 'react'
import { call, client, type Schemas } from '@/api/client'
import { isSupported } from '@/api/operations'
import { useGet } from '@/api/query'
import { Page } from '@/components/answer'
import { Button } from '@/components/button'
import { FieldList } from '@/components/form-fields'
import { LoadedSection } from '@/components/section'
import { StateWord } from '@/components/state'
import { Table } from '@/components/table'
import { TwoLines } from '@/components/two-lines'
import { useAction, useFormAction } from '@/components/action'
import { ActionForm } from '@/components/action-form'
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
      {isSupported('POST /alerts/webhook/test') ? <Receiver /> : null}
    </Page>
  )
}

function Receiver() {
  const t = useText().activity.alerts
  const webhook = useGet('/alerts/webhook', {}, { every: false })
  return (
    <LoadedSection title={t.webhook} hint={t.webhookHint} query={webhook}>
      {(value) => <Webhook webhook={value} />}
    </LoadedSection>
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

const FORMATS = ['json', 'ntfy', 'slack', 'alertmanager']
const choicesOf = (words: string[]) => words.map((word) => [word, word] as const)

/** What is sent of the receiver as it was read. */
function sentOf(read: Schemas['AlertWebhook']) {
  const { enabled, url, format, min_severity, timeout_sec, retries } = read
  return { enabled, url, format, min_severity, timeout_sec, retries }
}

function Webhook({ webhook }: { webhook: Schemas['AlertWebhook'] }) {
  const text = useText()
  const t = text.activity.alerts
  const [value, setValue] = useState(webhook)
  const [secret, setSecret] = useState('')
  const save = useFormAction(
    () =>
      call(
        client.PUT('/alerts/webhook', {
          params: { header: {} },
          body: { ...sentOf(value), ...(secret ? { secret } : {}) },
        }),
      ),
    () => {
      setSecret('')
      return text.common.saved
    },
  )
  const change = (field: string, next: unknown) =>
    field === 'secret' ? setSecret(next as string) : setValue((before) => ({ ...before, [field]: next }))
  return (
    <ActionForm
      className="form form--2"
      of={save}
      onSubmit={() => save.run()}
      word={text.common.save}
      needs="operator"
    >
      <FieldList
        draft={{ value: { ...value, secret }, set: change }}
        error={(path) => save.of(path)}
        fields={[
          { field: 'url', label: t.url, input: { type: 'url' } },
          {
            field: 'secret',
            kind: 'secret',
            label: t.secret,
            hint: webhook.has_secret ? t.secretKept : undefined,
            input: { autoComplete: 'off' },
          },
          { field: 'format', kind: 'choice', label: t.format, options: choicesOf(FORMATS) },
          {
            field: 'min_severity',
            kind: 'choice',
            label: t.minSeverity,
            options: Object.entries(text.alerts.severities),
          },
          { field: 'enabled', kind: 'check', label: t.enabled },
        ]}
      />
    </ActionForm>
  )
}
