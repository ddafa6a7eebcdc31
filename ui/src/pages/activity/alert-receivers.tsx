// Where alerts are sent: a webhook, mail and an MQTT broker, with a test of each.

import type { ReactNode } from 'react'
import { call, client, type Answer, type Schemas } from '@/api/client'
import { useAction } from '@/components/action'
import { Page } from '@/components/answer'
import { Button } from '@/components/button'
import type { Fields } from '@/components/draft'
import { FormFields, type FieldSpec, type FieldTexts } from '@/components/form-fields'
import { ObjectForm } from '@/components/object-form'
import { useObject, type Resource } from '@/components/resource'
import { LoadedSection } from '@/components/section'
import { useText } from '@/text'
import { broker, FORMATS, mail, SECURITIES, webhook } from './alert-receiver-forms'

export default function AlertReceivers() {
  const words = useText().alerts.receivers
  return (
    <Page question={words.question} answer={<Sentence />}>
      <Webhook />
      <Mail />
      <Broker />
    </Page>
  )
}

function Webhook() {
  const text = useText()
  const words = text.alerts.receivers
  return (
    <Receiver
      resource={webhook}
      title={words.webhook}
      hint={words.webhookHint}
      texts={words.webhookFields}
      isSet={({ url }) => url !== ''}
      test={() => call(client.POST('/alerts/webhook/test'))}
      fields={({ has_secret, has_token }) => [
        { field: 'enabled', kind: 'check', wide: true },
        { field: 'url', input: { type: 'url' }, wide: true },
        { field: 'format', kind: 'choice', options: FORMATS.map((each) => [each, each]) },
        { field: 'min_severity', kind: 'choice', options: Object.entries(text.alerts.severities) },
        { field: 'secret', kind: 'secret', stored: has_secret },
        { field: 'token', kind: 'secret', stored: has_token },
        { field: 'timeout_sec', kind: 'number', min: 1, max: 60 },
        { field: 'retries', kind: 'number', min: 0, max: 20 },
        { field: 'allow_private', kind: 'check' },
        { field: 'egress' },
        { field: 'ca_certificate', kind: 'area', rows: 3 },
      ]}
    />
  )
}

function Mail() {
  const text = useText()
  const words = text.alerts.receivers
  return (
    <Receiver
      resource={mail}
      title={words.mail}
      hint={words.mailHint}
      texts={words.mailFields}
      isSet={({ host, to }) => host !== '' && to.length > 0}
      test={() => call(client.POST('/alerts/email/test'))}
      fields={({ has_password }) => [
        { field: 'enabled', kind: 'check', wide: true },
        { field: 'host' },
        { field: 'port', kind: 'number', min: 1, max: 65_535 },
        {
          field: 'security',
          kind: 'choice',
          options: SECURITIES.map((each) => [each, words.securities[each]]),
        },
        { field: 'min_severity', kind: 'choice', options: Object.entries(text.alerts.severities) },
        { field: 'username' },
        { field: 'password', kind: 'secret', stored: has_password },
        { field: 'from', input: { type: 'email' } },
        { field: 'to', kind: 'lines' },
        { field: 'timeout_sec', kind: 'number', min: 1, max: 120 },
        { field: 'retries', kind: 'number', min: 0, max: 20 },
        { field: 'egress' },
        { field: 'ca_certificate', kind: 'area', rows: 3 },
      ]}
    />
  )
}

function Broker() {
  const words = useText().alerts.receivers
  return (
    <Receiver
      resource={broker}
      title={words.mqtt}
      hint={words.mqttHint}
      texts={words.mqttFields}
      isSet={({ host }) => host !== ''}
      test={() => call(client.POST('/alerts/mqtt/test'))}
      fields={({ has_password }) => [
        { field: 'enabled', kind: 'check', wide: true },
        { field: 'host' },
        { field: 'port', kind: 'number', min: 1, max: 65_535 },
        { field: 'username' },
        { field: 'password', kind: 'secret', stored: has_password },
        { field: 'topic_prefix' },
        { field: 'discovery_prefix' },
        { field: 'tls', kind: 'check' },
        { field: 'egress' },
        { field: 'ca_certificate', kind: 'area', rows: 3 },
      ]}
    />
  )
}

/** Which receivers are on. */
function Sentence() {
  const text = useText()
  const words = text.alerts.receivers
  const all = [
    [words.webhook, useObject(webhook, '', { every: false })],
    [words.mail, useObject(mail, '', { every: false })],
    [words.mqtt, useObject(broker, '', { every: false })],
  ] as const
  if (all.some(([, query]) => query.error)) return text.common.unreachable
  if (all.some(([, query]) => !query.data)) return text.common.loading
  return words.sentence(all.flatMap(([name, query]) => (query.data?.data.enabled ? [name] : [])))
}

interface Props<T, F extends Fields> {
  resource: Resource<T, F>
  title: string
  hint: ReactNode
  texts: FieldTexts<F>
  fields: (stored: T) => FieldSpec<F>[]
  /** There is something to test. */
  isSet: (stored: T) => boolean
  test: () => Promise<Answer<Schemas['ReceiverTest']>>
}

function Receiver<T, F extends Fields>(props: Props<T, F>) {
  const { resource, title, hint, texts, fields, isSet } = props
  const { alerts: words } = useText()
  const query = useObject(resource, '', { every: false })
  const test = useAction(props.test, ({ delivered, latency_ms, error }) =>
    delivered ? words.delivered(latency_ms) : words.notDelivered(error ?? '-'),
  )
  const { data } = query
  return (
    <LoadedSection
      title={title}
      hint={hint}
      query={query}
      lines={8}
      actions={
        data && isSet(data.data) ? (
          <Button size="small" needs="operator" does={test} title={words.receivers.testHint}>
            {words.test}
          </Button>
        ) : null
      }
    >
      {(stored) => (
        <ObjectForm resource={resource} stored={{ data: stored, etag: data?.etag ?? null }}>
          {(edit) => (
            <FormFields draft={edit.draft} texts={texts} error={edit.problems} fields={fields(stored)} />
          )}
        </ObjectForm>
      )}
    </LoadedSection>
  )
}
