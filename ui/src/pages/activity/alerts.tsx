// Rules of alerts, and where alerts are sent.

import { useState } from 'react'
import { call, client, type Schemas } from '@/api/client'
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
import { useText } from '@/text'

export default function Alerts() {
  const text = useText()
  const t = text.activity.alerts
  const rules = useGet('/alerts/rules')
  const webhook = useGet('/alerts/webhook', {}, { every: false })
  const list = rules.data?.data
  return (
    <Page
      question={t.question}
      answer={
        list ? t.sentence(list.filter((rule) => rule.enabled).length, list.length) : text.common.loading
      }
    >
      <LoadedSection title={t.rules} query={rules} lines={8}>
        {(all) => <Rules rules={all} />}
      </LoadedSection>
      <LoadedSection title={t.webhook} hint={t.webhookHint} query={webhook}>
        {(value) => <Webhook webhook={value} />}
      </LoadedSection>
    </Page>
  )
}

function Rules({ rules }: { rules: Schemas['AlertRule'][] }) {
  const text = useText()
  const t = text.activity.alerts
  const toggle = useAction(
    (rule: Schemas['AlertRule']) =>
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
        {
          head: t.rule,
          bare: true,
          cell: (rule) => (
            <TwoLines second={rule.description}>
              <span className="med">{rule.name}</span>
            </TwoLines>
          ),
        },
        { head: t.severity, cell: (rule) => rule.severity },
        { head: t.threshold, numeric: true, cell: (rule) => rule.threshold },
        { head: t.window, numeric: true, cell: (rule) => rule.window_sec },
        {
          head: text.common.enabled,
          cell: (rule) => (
            <StateWord state={rule.enabled ? 'ok' : 'idle'}>
              {rule.enabled ? text.common.on : text.common.off}
            </StateWord>
          ),
        },
        {
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

const FORMATS = ['alertmanager', 'alertmanager-v2', 'json', 'ntfy', 'slack']
const SEVERITIES = ['info', 'warning', 'critical']
const choicesOf = (words: string[]) => words.map((word) => [word, word] as const)

function Webhook({ webhook }: { webhook: Schemas['AlertWebhook'] }) {
  const text = useText()
  const t = text.activity.alerts
  const [value, setValue] = useState(webhook)
  const [secrets, setSecrets] = useState({ secret: '', token: '' })
  const save = useFormAction(
    () =>
      call(
        client.PUT('/alerts/webhook', {
          params: { header: {} },
          body: {
            enabled: value.enabled,
            url: value.url,
            format: value.format,
            min_severity: value.min_severity,
            timeout_sec: value.timeout_sec,
            retries: value.retries,
            ca_certificate: value.ca_certificate,
            allow_private: value.allow_private,
            ...(secrets.secret ? { secret: secrets.secret } : {}),
            ...(secrets.token ? { token: secrets.token } : {}),
          },
        }),
      ),
    () => {
      setSecrets({ secret: '', token: '' })
      return text.common.saved
    },
  )
  const change = (field: string, next: unknown) =>
    field in secrets
      ? setSecrets((before) => ({ ...before, [field]: next as string }))
      : setValue((before) => ({ ...before, [field]: next }))
  return (
    <ActionForm
      className="form form--2"
      of={save}
      onSubmit={() => save.run()}
      word={text.common.save}
      needs="operator"
    >
      <FieldList
        draft={{ value: { ...value, ...secrets }, set: change }}
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
          {
            field: 'token',
            kind: 'secret',
            label: t.token,
            hint: webhook.has_token ? t.tokenKept : t.tokenHint,
            input: { autoComplete: 'off' },
          },
          { field: 'format', kind: 'choice', label: t.format, options: choicesOf(FORMATS) },
          { field: 'min_severity', kind: 'choice', label: t.minSeverity, options: choicesOf(SEVERITIES) },
          { field: 'allow_private', kind: 'check', label: t.allowPrivate },
          { field: 'enabled', kind: 'check', label: t.enabled },
        ]}
      />
    </ActionForm>
  )
}
