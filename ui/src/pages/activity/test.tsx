// One test definition: create, change, delete.

import { useParams } from '@tanstack/react-router'
import { call, client, type ApiError, type Schemas } from '@/api/client'
import { get, useGet } from '@/api/query'
import { useTitle } from '@/session/crumb'
import { useGo } from '@/session/link'
import { useEdit } from '@/components/edit'
import { Check, Select, TextArea, TextField } from '@/components/fields'
import { EditForm } from '@/components/form'
import { ObjectPage } from '@/components/object-page'
import { Loaded, Section } from '@/components/section'
import { useText } from '@/text'
import { activity } from './entry'

type Test = Schemas['TestDefinition']
type Kind = 'device' | 'group' | 'cidr'

/** The fields of the form. */
type Form = {
  name: string
  kind: Kind
  source: string
  proto: Schemas['TestProtocolInput']
  accept: string
  deny: string
  egress: string
  gate: boolean
  enabled: boolean
}

const EMPTY: Form = {
  name: '',
  kind: 'device',
  source: '',
  proto: 'tcp',
  accept: '',
  deny: '',
  egress: '',
  gate: false,
  enabled: true,
}

export function formOf(test: Test): Form {
  const { device, group, cidr } = test.source
  return {
    name: test.name,
    kind: device ? 'device' : group ? 'group' : 'cidr',
    source: device ?? group ?? cidr ?? '',
    proto: test.proto,
    accept: test.accept.join('\n'),
    deny: test.deny.join('\n'),
    egress: test.expect_egress ?? '',
    gate: test.gate,
    enabled: test.enabled,
  }
}

export function inputOf(form: Form, test: Test | undefined): Schemas['TestDefinitionInput'] {
  const lines = (value: string) =>
    value
      .split(/[\n,]/)
      .map((line) => line.trim())
      .filter(Boolean)
  return {
    name: form.name,
    enabled: form.enabled,
    source: { device: null, group: null, cidr: null, [form.kind]: form.source || null },
    proto: form.proto,
    accept: lines(form.accept),
    deny: lines(form.deny),
    expect_egress: form.egress.trim() || null,
    dns: test?.dns ?? null,
    mode: test?.mode ?? 'plan',
    gate: form.gate,
  }
}

export default function TestPage() {
  const { id } = useParams({ strict: false }) as { id: string }
  return id === 'new' ? <Editor /> : <Existing id={id} />
}

function Existing({ id }: { id: string }) {
  const read = useGet('/test-definitions/{id}', { path: { id } }, { every: false })
  return (
    <Loaded query={read} lines={8}>
      {(test) => <Editor key={id} test={test} etag={read.data?.etag ?? null} />}
    </Loaded>
  )
}

function Editor({ test, etag = null }: { test?: Test; etag?: string | null }) {
  const text = useText()
  const t = text.activity.tests
  const go = useGo()
  const key = `test.${test?.id ?? 'new'}`
  const edit = useEdit<Form>({
    key,
    version: { value: test ? formOf(test) : EMPTY, etag },
    save: (form, tag) =>
      test
        ? call(
            client.PUT('/test-definitions/{id}', {
              params: { path: { id: test.id }, header: tag ? { 'If-Match': tag } : {} },
              body: inputOf(form, test),
            }),
          )
        : call(client.POST('/test-definitions', { body: inputOf(form, undefined) })),
    read: async () => {
      const now = await get('/test-definitions/{id}', { path: { id: test?.id ?? '' } })
      return { value: formOf(now.data), etag: now.etag }
    },
    onSaved: () => go('/activity/tests'),
  })
  useTitle(test?.name ?? t.newTest)
  const { draft, of } = edit
  return (
    <ObjectPage
      question={t.what}
      answer={test?.name ?? t.newTest}
      entry={activity}
      deletion={
        test
          ? {
              name: test.name,
              title: `${text.common.delete}: ${test.name}`,
              consequence: t.consequence,

              remove: () =>
                call(client.DELETE('/test-definitions/{id}', { params: { path: { id: test.id } } })),
              back: '/activity/tests',
              draft: key,
            }
          : null
      }
    >
      <Section title={test ? text.common.edit : text.common.create}>
        <EditForm edit={edit} isNew={!test} onCancel={() => go('/activity/tests')}>
          <div className="form">
            <TextField
              label={t.name}
              value={draft.value.name}
              error={of('name')}
              onChange={(value) => draft.set('name', value)}
              required
            />
            <Select<Kind>
              label={t.sourceKind}
              value={draft.value.kind}
              options={[
                ['device', t.kinds.device],
                ['group', t.kinds.group],
                ['cidr', t.kinds.cidr],
              ]}
              onChange={(kind) => draft.replace({ ...draft.value, kind, source: '' })}
            />
            <Source
              kind={draft.value.kind}
              value={draft.value.source}
              error={of(`source.${draft.value.kind}`) ?? of('source')}
              onChange={(value) => draft.set('source', value)}
            />
            <Select
              label={t.proto}
              value={draft.value.proto}
              options={[
                ['tcp', 'TCP'],
                ['udp', 'UDP'],
              ]}
              onChange={(value) => draft.set('proto', value)}
            />
            <TextArea
              label={t.accept}
              hint={t.targetsHint}
              rows={3}
              value={draft.value.accept}
              error={listError(edit.problems, 'accept')}
              onChange={(value) => draft.set('accept', value)}
            />
            <TextArea
              label={t.deny}
              rows={3}
              value={draft.value.deny}
              error={listError(edit.problems, 'deny')}
              onChange={(value) => draft.set('deny', value)}
            />
            <TextField
              label={t.egressLabel}
              hint={t.egressHint}
              value={draft.value.egress}
              error={of('expect_egress')}
              onChange={(value) => draft.set('egress', value)}
            />
            <Check
              label={t.gateLabel}
              checked={draft.value.gate}
              onChange={(value) => draft.set('gate', value)}
            />
            <Check
              label={t.enabledLabel}
              checked={draft.value.enabled}
              onChange={(value) => draft.set('enabled', value)}
            />
          </div>
        </EditForm>
      </Section>
    </ObjectPage>
  )
}

/** The first error of a list, or of one of its items. */
function listError(error: ApiError | null, path: string): string | undefined {
  return error?.fields.find((field) => field.path === path || field.path.startsWith(`${path}[`))?.message
}

interface SourceProps {
  kind: Kind
  value: string
  error: string | undefined
  onChange: (value: string) => void
}

function Source({ kind, value, error, onChange }: SourceProps) {
  const text = useText()
  const t = text.activity.tests
  const devices = useGet('/devices', {}, { enabled: kind === 'device' }).data?.data ?? []
  const groups = useGet('/device-groups', {}, { enabled: kind === 'group' }).data?.data ?? []
  if (kind === 'cidr')
    return (
      <TextField
        label={t.cidr}
        value={value}
        error={error}
        onChange={onChange}
        placeholder="192.168.10.0/24"
      />
    )
  const objects = kind === 'device' ? devices : groups
  return (
    <Select
      label={kind === 'device' ? t.device : t.group}
      value={value}
      error={error}
      options={[['', t.choose] as const, ...objects.map((each) => [each.id, each.name] as const)]}
      onChange={onChange}
    />
  )
}
