// One test definition: create, change, delete.

import { useState } from 'react'
import { useParams } from '@tanstack/react-router'
import { ApiError, call, client, type Schemas } from '@/api/client'
import { useChange, useGet } from '@/api/query'
import { useTitle } from '@/app/crumb'
import { Link, useGo } from '@/app/link'
import { say, sayError } from '@/app/toasts'
import { Button } from '@/components/button'
import { Confirm } from '@/components/confirm'
import { merge, useDraft, type Clash } from '@/components/draft'
import { Check, ErrorSummary, Select, TextArea, TextField } from '@/components/fields'
import { MergeDialog } from '@/components/merge-dialog'
import { Loaded, Section } from '@/components/section'
import { useText } from '@/text'

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
  // What the form was filled from; a later version of another user is merged with it.
  const [base, setBase] = useState({ form: test ? formOf(test) : EMPTY, etag })
  const draft = useDraft(`test.${test?.id ?? 'new'}`, base.form)
  const [clashes, setClashes] = useState<{ list: Clash[]; merged: Form; theirs: Form; etag: string | null }>()
  const [deleting, setDeleting] = useState(false)
  useTitle(test?.name ?? t.newTest)
  const save = useChange(({ form, match }: { form: Form; match: string | null }) =>
    test
      ? call(
          client.PUT('/test-definitions/{id}', {
            params: { path: { id: test.id }, header: match ? { 'If-Match': match } : {} },
            body: inputOf(form, test),
          }),
        )
      : call(client.POST('/test-definitions', { body: inputOf(form, undefined) })),
  )
  const remove = useChange(() =>
    call(client.DELETE('/test-definitions/{id}', { params: { path: { id: test?.id ?? '' } } })),
  )
  const submit = (form: Form, match: string | null) =>
    save.mutate(
      { form, match },
      {
        onSuccess: ({ warnings }) => {
          draft.discard()
          say(text.common.saved, warnings)
          go('/activity/tests')
        },
        onError: (error) => void (error instanceof ApiError && error.status === 412 ? reread() : undefined),
      },
    )
  const reread = async () => {
    try {
      const now = await call(
        client.GET('/test-definitions/{id}', { params: { path: { id: test?.id ?? '' } } }),
      )
      const theirs = formOf(now.data)
      const { merged, clashes: list } = merge(base.form, draft.value, theirs)
      setClashes({ list, merged, theirs, etag: now.etag })
    } catch (error) {
      sayError(error as Error)
    }
  }
  const error = save.error instanceof ApiError && save.error.status !== 412 ? save.error : undefined
  const of = (path: string) => error?.of(path)
  return (
    <>
      <section className="answer">
        <p className="answer__q">
          <Link to="/activity/tests">{t.back}</Link>
        </p>
        <h1>{test?.name ?? t.newTest}</h1>
      </section>
      <Section title={t.list} hint={t.what}>
        <form
          className="form"
          onSubmit={(event) => {
            event.preventDefault()
            submit(draft.value, base.etag)
          }}
        >
          {error ? <ErrorSummary error={error} /> : null}
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
            error={listError(error, 'accept')}
            onChange={(value) => draft.set('accept', value)}
          />
          <TextArea
            label={t.deny}
            rows={3}
            value={draft.value.deny}
            error={listError(error, 'deny')}
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
          <div className="btns">
            <Button kind="primary" submit needs="operator" busy={save.isPending}>
              {test ? text.common.save : text.common.create}
            </Button>
            <Button
              kind="ghost"
              onClick={() => {
                draft.discard()
                go('/activity/tests')
              }}
            >
              {text.common.cancel}
            </Button>
            {test ? (
              <Button needs="operator" onClick={() => setDeleting(true)}>
                {text.common.delete}
              </Button>
            ) : null}
          </div>
        </form>
      </Section>
      {test ? (
        <Confirm
          open={deleting}
          onClose={() => setDeleting(false)}
          title={`${text.common.delete}: ${test.name}`}
          consequence={t.consequence}
          name={test.name}
          action={text.common.delete}
          busy={remove.isPending}
          error={remove.error}
          onConfirm={() =>
            remove.mutate(undefined, {
              onSuccess: () => {
                draft.discard()
                say(text.common.deleted(test.name))
                go('/activity/tests')
              },
            })
          }
        />
      ) : null}
      {clashes ? (
        <MergeDialog
          clashes={clashes.list}
          onClose={() => setClashes(undefined)}
          onMerge={(fields) => {
            const merged = { ...clashes.merged }
            for (const field of fields)
              Object.assign(merged, { [field]: clashes.theirs[field as keyof Form] })
            setClashes(undefined)
            setBase({ form: clashes.theirs, etag: clashes.etag })
            draft.replace(merged)
            submit(merged, clashes.etag)
          }}
        />
      ) : null}
    </>
  )
}

/** The first error of a list, or of one of its items. */
function listError(error: ApiError | undefined, path: string): string | undefined {
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
