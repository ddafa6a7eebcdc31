// One test definition: create, change, delete.

import type { ApiError, Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { useGo } from '@/session/link'
import { linesOf } from '@/components/draft-lines'
import type { Edit } from '@/components/edit'
import { Select, TextField } from '@/components/fields'
import { EditForm } from '@/components/form'
import { FieldList, type FieldSpec } from '@/components/form-fields'
import { ObjectRoute } from '@/components/object-form'
import { ObjectPage } from '@/components/object-page'
import { deletionOf, resource, useObjectEdit, type Stored } from '@/components/resource'
import { Section } from '@/components/section'
import { useText, type Text } from '@/text'

type Test = Schemas['TestDefinition']
type Texts = Text['activity']['tests']
type Kind = 'device' | 'group' | 'cidr'
type Expectation = Schemas['DnsExpectationInput']

/** The fields of the form. */
type Form = {
  name: string
  kind: Kind
  source: string
  proto: Schemas['TestProtocolInput']
  accept: string
  deny: string
  egress: string
  mode: Schemas['TestModeInput']
  dnsName: string
  dnsExpect: Expectation
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
  mode: 'plan',
  dnsName: '',
  dnsExpect: 'resolve',
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
    mode: test.mode,
    dnsName: test.dns?.name ?? '',
    dnsExpect: test.dns?.expect ?? 'resolve',
    gate: test.gate,
    enabled: test.enabled,
  }
}

export function inputOf(form: Form): Schemas['TestDefinitionInput'] {
  return {
    name: form.name,
    enabled: form.enabled,
    source: { device: null, group: null, cidr: null, [form.kind]: form.source || null },
    proto: form.proto,
    accept: linesOf(form.accept),
    deny: linesOf(form.deny),
    expect_egress: form.egress.trim() || null,
    dns: form.dnsName.trim() ? { name: form.dnsName.trim(), expect: form.dnsExpect } : null,
    mode: form.mode,
    gate: form.gate,
  }
}

const tests = resource('/test-definitions/{id}', {
  key: 'test',
  fields: (test: Test | null) => (test ? formOf(test) : EMPTY),
  body: (form) => inputOf(form),
})

export default function TestPage() {
  const t = useText().activity.tests
  return (
    <ObjectRoute resource={tests} newTitle={t.newTest}>
      {(stored) => <Editor stored={stored} />}
    </ObjectRoute>
  )
}

function Editor({ stored }: { stored: Stored<Test> | null }) {
  const text = useText()
  const t = text.activity.tests
  const go = useGo()
  const test = stored?.data
  const edit = useObjectEdit(tests, stored, { onSaved: () => go('/activity/tests') })
  return (
    <ObjectPage
      question={t.what}
      answer={test?.name ?? t.newTest}
      deletion={deletionOf(tests, test, {
        title: (name) => `${text.common.delete}: ${name}`,
        consequence: t.consequence,
        back: '/activity/tests',
      })}
    >
      <Section title={test ? text.common.edit : text.common.create}>
        <EditForm edit={edit} isNew={!test} onCancel={() => go('/activity/tests')}>
          <div className="form">
            <TestFields edit={edit} />
          </div>
        </EditForm>
      </Section>
    </ObjectPage>
  )
}

function TestFields({ edit }: { edit: Edit<Form> }) {
  const t = useText().activity.tests
  const { draft, problems } = edit
  const { value, set, replace } = draft
  return (
    <FieldList
      draft={draft}
      error={(path) => edit.of(path) ?? listError(problems, path)}
      fields={[
        { field: 'name', label: t.name, required: true },
        {
          field: 'kind',
          render: () => (
            <Select<Kind>
              label={t.sourceKind}
              value={value.kind}
              options={[
                ['device', t.kinds.device],
                ['group', t.kinds.group],
                ['cidr', t.kinds.cidr],
              ]}
              onChange={(kind) => replace({ ...value, kind, source: '' })}
            />
          ),
        },
        {
          field: 'source',
          render: ({ error }) => (
            <Source
              kind={value.kind}
              value={value.source}
              error={edit.of(`source.${value.kind}`) ?? error}
              onChange={(source) => set('source', source)}
            />
          ),
        },
        ...expectations(t),
        { field: 'gate', kind: 'check', label: t.gateLabel },
        { field: 'enabled', kind: 'check', label: t.enabledLabel },
      ]}
    />
  )
}

/** The fields that say what is expected, and how it is tried. */
function expectations(t: Texts): FieldSpec<Form>[] {
  return [
    {
      field: 'proto',
      kind: 'choice',
      label: t.proto,
      options: [
        ['tcp', 'TCP'],
        ['udp', 'UDP'],
      ],
    },
    { field: 'accept', kind: 'area', rows: 3, label: t.accept, hint: t.targetsHint },
    { field: 'deny', kind: 'area', rows: 3, label: t.deny },
    { field: 'egress', path: 'expect_egress', label: t.egressLabel, hint: t.egressHint },
    {
      field: 'mode',
      kind: 'choice',
      label: t.mode,
      hint: t.modeHint,
      options: [
        ['plan', t.modes.plan],
        ['live', t.modes.live],
      ],
    },
    { field: 'dnsName', path: 'dns.name', label: t.dnsName, hint: t.dnsHint },
    {
      field: 'dnsExpect',
      path: 'dns.expect',
      kind: 'choice',
      label: t.dnsExpect,
      options: [
        ['resolve', t.dnsExpects.resolve],
        ['blocked', t.dnsExpects.blocked],
      ],
    },
  ]
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
