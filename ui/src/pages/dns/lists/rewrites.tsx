// Answers of one's own for names.

import { call, client, type Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { Check, TextField } from '@/components/fields'
import { StateWord } from '@/components/state'
import { useText } from '@/text'
import { ResourceSection, type FormProps, type Resource } from '../editor'

type Row = Schemas['DnsRewrite']
type Fields = Schemas['DnsRewriteInput']

const resource: Resource<Row, Fields> = {
  type: 'dns_rewrite',
  key: 'rewrite',
  blank: { domain: '', answer: '', enabled: true },
  name: (row) => row.domain,
  fields: ({ domain, answer, enabled }) => ({ domain, answer, enabled }),
  get: (id) => call(client.GET('/dns/rewrites/{id}', { params: { path: { id } } })),
  create: (body) => call(client.POST('/dns/rewrites', { body })),
  update: (id, body, etag) =>
    call(
      client.PUT('/dns/rewrites/{id}', {
        params: { path: { id }, header: etag === null ? {} : { 'If-Match': etag } },
        body,
      }),
    ),
  remove: (id) => call(client.DELETE('/dns/rewrites/{id}', { params: { path: { id } } })),
}

export function Rewrites() {
  const text = useText()
  const { lists } = text.dns
  const query = useGet('/dns/rewrites')
  return (
    <ResourceSection
      resource={resource}
      words={lists.rewrites}
      query={query}
      columns={[
        {
          accessorKey: 'domain',
          header: lists.columns.domain,
          meta: { label: '' },
          cell: ({ row }) => <span className="med">{row.original.domain}</span>,
        },
        {
          accessorKey: 'answer',
          header: lists.columns.answer,
          cell: ({ row }) => <code>{row.original.answer}</code>,
        },
        {
          accessorKey: 'enabled',
          header: lists.columns.state,
          cell: ({ row }) => <OnOff on={row.original.enabled} />,
        },
      ]}
      form={(props) => <RewriteForm {...props} />}
      toggles
    />
  )
}

/** On is plain ink; off has a shape. */
export function OnOff({ on }: { on: boolean }) {
  const { states } = useText().dns.lists
  return on ? (
    <span className="st st--plain">{states.on}</span>
  ) : (
    <StateWord state="idle">{states.off}</StateWord>
  )
}

function RewriteForm({ draft, error }: FormProps<Fields>) {
  const text = useText()
  const { rewrites, form } = text.dns.lists
  return (
    <>
      <TextField
        label={rewrites.domain}
        hint={rewrites.domainHint}
        value={draft.value.domain}
        error={error('domain')}
        spellCheck={false}
        autoCapitalize="none"
        onChange={(next) => draft.set('domain', next)}
      />
      <TextField
        label={rewrites.answer}
        hint={rewrites.answerHint}
        value={draft.value.answer}
        error={error('answer')}
        spellCheck={false}
        onChange={(next) => draft.set('answer', next)}
      />
      <Check
        label={form.enabled}
        checked={draft.value.enabled}
        onChange={(next) => draft.set('enabled', next)}
      />
    </>
  )
}
