// One privacy class.

import { useParams } from '@tanstack/react-router'
import { call, client, type Schemas } from '@/api/client'
import { get, useGet } from '@/api/query'
import { useTitle } from '@/session/crumb'
import { useGo } from '@/session/link'
import { useEdit } from '@/components/edit'
import { Check, Select, TextArea, TextField } from '@/components/fields'
import { EditForm } from '@/components/form'
import { ObjectPage } from '@/components/object-page'
import { Failure, Skeleton } from '@/components/section'
import { Tag } from '@/components/state'
import { useText } from '@/text'
import { Back } from './back'
import { policies as entry } from './entry'

type PrivacyClass = Schemas['PrivacyClass']
type Draft = ReturnType<typeof inputOf>

function inputOf(each: PrivacyClass) {
  const { name, description, dns_mode, force_dns, force_ntp, block_doh, block_dot, block_quic } = each
  const { block_ipv6, webrtc, ech, fail_policy_floor, allow_exceptions, query_log, telemetry_lists } = each
  return {
    name,
    description,
    dns_mode,
    force_dns,
    force_ntp,
    block_doh,
    block_dot,
    block_quic,
    block_ipv6,
    webrtc,
    ech,
    fail_policy_floor,
    allow_exceptions,
    query_log,
    telemetry_lists,
  }
}

const EMPTY: Draft = {
  name: '',
  description: '',
  dns_mode: 'device',
  force_dns: true,
  force_ntp: false,
  block_doh: false,
  block_dot: false,
  block_quic: false,
  block_ipv6: false,
  webrtc: 'off',
  ech: 'allow',
  fail_policy_floor: 'fail-closed',
  allow_exceptions: true,
  query_log: 'full',
  telemetry_lists: [],
}

const SWITCHES = [
  'force_dns',
  'force_ntp',
  'block_doh',
  'block_dot',
  'block_quic',
  'block_ipv6',
  'allow_exceptions',
] as const

export default function ClassPage() {
  const text = useText()
  const { id } = useParams({ strict: false }) as { id: string }
  const isNew = id === 'new'
  const query = useGet('/privacy-classes/{id}', { path: { id } }, { enabled: !isNew })
  const found = query.data?.data
  useTitle(isNew ? text.policies.createClass : found?.name)
  if (isNew) return <ClassForm key="new" found={null} etag={null} />
  if (!found) return query.error ? <Failure error={query.error} /> : <Skeleton lines={6} />
  return <ClassForm key={found.id} found={found} etag={query.data?.etag ?? null} />
}

function ClassForm({ found, etag }: { found: PrivacyClass | null; etag: string | null }) {
  const text = useText()
  const go = useGo()
  const edit = useEdit<Draft, PrivacyClass>({
    key: `privacy-class.${found?.id ?? 'new'}`,
    version: { value: found ? inputOf(found) : EMPTY, etag },
    save: (value, tag) => {
      const body = { ...value, builtin: found?.builtin ?? false }
      return found
        ? call(
            client.PUT('/privacy-classes/{id}', {
              params: { path: { id: found.id }, header: { 'If-Match': tag ?? '' } },
              body,
            }),
          )
        : call(client.POST('/privacy-classes', { body }))
    },
    read: async () => {
      const now = await get('/privacy-classes/{id}', { path: { id: found?.id ?? '' } })
      return { value: inputOf(now.data), etag: now.etag }
    },
    onSaved: (saved) => {
      if (!found) go(`/policies/classes/${saved.id}`)
    },
  })
  const { value, set } = edit.draft
  const errorOf = edit.of
  const choice = <K extends 'dns_mode' | 'fail_policy_floor' | 'webrtc' | 'ech' | 'query_log'>(
    field: K,
    label: string,
    words: Record<string, string>,
    hint?: string,
  ) => (
    <Select
      label={label}
      hint={hint}
      value={value[field] as string}
      error={errorOf(field)}
      options={Object.entries(words).map(([key, said]) => [key, said] as const)}
      onChange={(next) => set(field, next as Draft[K])}
    />
  )
  return (
    <ObjectPage
      entry={entry}
      question={text.policies.classQuestion}
      answer={
        <>
          {found?.name ?? text.policies.createClass}{' '}
          {found?.builtin ? <Tag>{text.policies.builtin}</Tag> : null}
        </>
      }
      deletion={
        found && !found.builtin
          ? {
              name: found.name,
              title: text.policies.deleteTitle(found.name),
              consequence: text.policies.deleteClassMeans,
              subject: { type: 'privacy_class', id: found.id },
              action: text.policies.deleteClass,
              remove: () =>
                call(client.DELETE('/privacy-classes/{id}', { params: { path: { id: found.id } } })),
              back: '/policies/classes',
              draft: `privacy-class.${found.id}`,
            }
          : null
      }
    >
      <EditForm
        edit={edit}
        isNew={!found}
        buttons={<Back to="/policies/classes">{text.policies.classes}</Back>}
      >
        <div className="form form--2">
          <TextField
            label={text.common.name}
            value={value.name}
            error={errorOf('name')}
            disabled={found?.builtin}
            autoComplete="off"
            onChange={(name) => set('name', name)}
          />
          <TextField
            label={text.common.description}
            value={value.description}
            error={errorOf('description')}
            onChange={(description) => set('description', description)}
          />
        </div>
        <h3>{text.policies.sectionFail}</h3>
        {choice(
          'fail_policy_floor',
          text.policies.floorLabel,
          text.policies.failOptions,
          text.policies.floorHint,
        )}
        <h3>{text.policies.blocks}</h3>
        <div className="form form--2">
          {SWITCHES.map((field) => (
            <Check
              key={field}
              label={text.policies.switches[field] ?? field}
              checked={value[field]}
              onChange={(on) => set(field, on)}
            />
          ))}
        </div>
        <div className="form form--2">
          {choice('dns_mode', text.policies.dnsMode, text.policies.classDnsModes)}
          {choice('webrtc', text.policies.webrtc, text.policies.webrtcs)}
          {choice('ech', text.policies.ech, text.policies.echs)}
          {choice('query_log', text.policies.queryLog, text.policies.queryLogs)}
        </div>
        <TextArea
          label={text.policies.telemetryLists}
          hint={text.policies.telemetryHint}
          rows={3}
          value={value.telemetry_lists.join('\n')}
          error={errorOf('telemetry_lists')}
          onChange={(written) => set('telemetry_lists', written === '' ? [] : written.split('\n'))}
        />
      </EditForm>
    </ObjectPage>
  )
}
