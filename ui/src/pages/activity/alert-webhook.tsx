// The webhook that alerts are sent to, and a test of it.

import { useState } from 'react'
import { call, client, type Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { useAction, useFormAction } from '@/components/action'
import { ActionForm } from '@/components/action-form'
import { Button } from '@/components/button'
import { FieldList } from '@/components/form-fields'
import { LoadedSection } from '@/components/section'
import { useText } from '@/text'

const FORMATS = ['alertmanager', 'alertmanager-v2', 'json', 'ntfy', 'slack']
const NO_SECRETS = { secret: '', token: '' }

export function WebhookSection() {
  const text = useText()
  const t = text.activity.alerts
  const webhook = useGet('/alerts/webhook', {}, { every: false })
  const test = useAction(
    () => call(client.POST('/alerts/webhook/test')),
    ({ delivered, latency_ms, error }) =>
      delivered ? text.alerts.delivered(latency_ms) : text.alerts.notDelivered(error ?? '-'),
  )
  return (
    <LoadedSection
      title={t.webhook}
      hint={t.webhookHint}
      query={webhook}
      actions={
        webhook.data?.data.url ? (
          <Button size="small" needs="operator" does={test}>
            {text.alerts.test}
          </Button>
        ) : null
      }
    >
      {(value) => <Webhook webhook={value} />}
    </LoadedSection>
  )
}

/** What is sent of the receiver as it was read. */
function sentOf(read: Schemas['AlertWebhook']) {
  const { enabled, url, format, min_severity, timeout_sec, retries, ca_certificate, allow_private, egress } =
    read
  return { enabled, url, format, min_severity, timeout_sec, retries, ca_certificate, allow_private, egress }
}

function Webhook({ webhook }: { webhook: Schemas['AlertWebhook'] }) {
  const text = useText()
  const t = text.activity.alerts
  const [value, setValue] = useState(webhook)
  const [secrets, setSecrets] = useState(NO_SECRETS)
  const typed = Object.fromEntries(Object.entries(secrets).filter(([, secret]) => secret !== ''))
  const save = useFormAction(
    () =>
      call(client.PUT('/alerts/webhook', { params: { header: {} }, body: { ...sentOf(value), ...typed } })),
    () => {
      setSecrets(NO_SECRETS)
      return text.common.saved
    },
  )
  const change = (field: string, next: unknown) =>
    field in secrets
      ? setSecrets((before) => ({ ...before, [field]: next as string }))
      : setValue((before) => ({ ...before, [field]: next }))
  const secret = (field: string, label: string, hint: string | undefined) =>
    ({ field, kind: 'secret', label, hint, input: { autoComplete: 'off' } }) as const
  return (
    <ActionForm
      className="form form--2"
      of={save}
      onSubmit={() => save.run()}
      word={text.common.save}
      needs="operator"
    >
      <FieldList<Record<string, unknown>>
        draft={{ value: { ...value, ...secrets }, set: change }}
        error={save.of}
        fields={[
          { field: 'url', label: t.url, input: { type: 'url' } },
          secret('secret', t.secret, webhook.has_secret ? t.secretKept : undefined),
          secret('token', t.token, webhook.has_token ? t.tokenKept : t.tokenHint),
          { field: 'format', kind: 'choice', label: t.format, options: FORMATS.map((each) => [each, each]) },
          {
            field: 'min_severity',
            kind: 'choice',
            label: t.minSeverity,
            options: Object.entries(text.alerts.severities),
          },
          { field: 'allow_private', kind: 'check', label: t.allowPrivate },
          { field: 'enabled', kind: 'check', label: t.enabled },
        ]}
      />
    </ActionForm>
  )
}
