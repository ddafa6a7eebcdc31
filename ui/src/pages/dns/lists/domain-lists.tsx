// The allowlist and the blocklist: single domains, and lists that are subscribed by their address.

import { call, client, type Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { Check, Select, TextField } from '@/components/fields'
import { StateWord } from '@/components/state'
import { Age } from '@/components/time'
import type { ColumnDef } from '@/components/data-table'
import { useText, type Text } from '@/text'
import { numberOf } from '../numbers'
import { ResourceSection, type FormProps, type Resource } from '../editor'

type Row = Schemas['DnsBlock'] | Schemas['DnsAllow']

// A type, not an interface: a draft holds plain fields.
type Fields = {
  domain: string | null
  name: string | null
  url: string | null
  enabled: boolean
  comment: string
}

const blank: Fields = { domain: '', name: null, url: null, enabled: true, comment: '' }
const fields = ({ domain, name, url, enabled, comment }: Row): Fields => ({
  domain,
  name,
  url,
  enabled,
  comment,
})
const name = (row: Row) => row.domain ?? row.name ?? row.url ?? row.id
const match = (etag: string | null) => (etag === null ? {} : { 'If-Match': etag })

const allow: Resource<Row, Fields> = {
  type: 'dns_allow',
  key: 'allow',
  blank,
  name,
  fields,
  get: (id) => call(client.GET('/dns/allowlist/{id}', { params: { path: { id } } })),
  create: (body) => call(client.POST('/dns/allowlist', { body })),
  update: (id, body, etag) =>
    call(client.PUT('/dns/allowlist/{id}', { params: { path: { id }, header: match(etag) }, body })),
  remove: (id) => call(client.DELETE('/dns/allowlist/{id}', { params: { path: { id } } })),
}

const block: Resource<Row, Fields> = {
  type: 'dns_block',
  key: 'block',
  blank,
  name,
  fields,
  get: (domain) => call(client.GET('/dns/blocklist/{domain}', { params: { path: { domain } } })),
  create: (body) => call(client.POST('/dns/blocklist', { body })),
  update: (domain, body, etag) =>
    call(client.PUT('/dns/blocklist/{domain}', { params: { path: { domain }, header: match(etag) }, body })),
  remove: (domain) => call(client.DELETE('/dns/blocklist/{domain}', { params: { path: { domain } } })),
}

export function DomainLists() {
  const text = useText()
  const { lists } = text.dns
  const allowed = useGet('/dns/allowlist')
  const blocked = useGet('/dns/blocklist')
  const columns = columnsOf(text)
  return (
    <>
      <ResourceSection
        resource={block}
        words={lists.block}
        query={blocked}
        columns={columns}
        form={(props) => <ListForm {...props} />}
        toggles
        primary
      />
      <ResourceSection
        resource={allow}
        words={lists.allow}
        query={allowed}
        columns={columns}
        form={(props) => <ListForm {...props} />}
        toggles
      />
    </>
  )
}

function columnsOf(text: Text): ColumnDef<Row, string>[] {
  const { columns } = text.dns.lists
  return [
    {
      id: 'entry',
      header: columns.entry,
      accessorFn: name,
      meta: { label: '' },
      cell: ({ row: { original } }) => (
        <span className="two">
          <span className="med">{name(original)}</span>
          {original.url ? <small className="mono">{original.url}</small> : null}
          {original.comment ? <small>{original.comment}</small> : null}
        </span>
      ),
    },
    {
      id: 'state',
      header: columns.state,
      accessorFn: (row) => String(row.enabled),
      cell: ({ row }) => <ListState row={row.original} />,
    },
    {
      id: 'size',
      header: columns.size,
      accessorFn: (row) => String(row.rules_count ?? 0).padStart(12, '0'),
      meta: { numeric: true },
      cell: ({ row: { original } }) => numberOf(original.rules_count),
    },
    {
      id: 'updated',
      header: columns.updated,
      accessorFn: (row) => row.last_updated ?? '',
      cell: ({ row: { original } }) => (original.last_updated ? <Age time={original.last_updated} /> : '-'),
    },
  ]
}

function ListState({ row }: { row: Row }) {
  const { states } = useText().dns.lists
  if (!row.enabled) return <StateWord state="idle">{states.off}</StateWord>
  if (row.error)
    return (
      <span className="two">
        <StateWord state="down">{states.error}</StateWord>
        <small>{row.error}</small>
      </span>
    )
  if (row.url && row.last_updated === null) return <StateWord state="unknown">{states.waiting}</StateWord>
  return <span className="st st--plain">{states.on}</span>
}

function ListForm({ draft, error }: FormProps<Fields>) {
  const text = useText()
  const { form } = text.dns.lists
  const { value, set } = draft
  const isList = value.url !== null
  return (
    <>
      <Select
        label={form.kind}
        value={isList ? 'list' : 'domain'}
        options={[
          ['domain', form.domainKind],
          ['list', form.listKind],
        ]}
        onChange={(kind) =>
          draft.replace(
            kind === 'list'
              ? { ...value, domain: null, url: '', name: '' }
              : { ...value, domain: '', url: null, name: null },
          )
        }
      />
      {isList ? (
        <>
          <TextField
            label={form.listName}
            value={value.name ?? ''}
            error={error('name')}
            onChange={(next) => set('name', next)}
          />
          <TextField
            label={form.url}
            hint={form.urlHint}
            type="url"
            value={value.url ?? ''}
            error={error('url')}
            onChange={(next) => set('url', next)}
          />
        </>
      ) : (
        <TextField
          label={form.domain}
          value={value.domain ?? ''}
          error={error('domain')}
          spellCheck={false}
          autoCapitalize="none"
          onChange={(next) => set('domain', next)}
        />
      )}
      <TextField
        label={form.comment}
        value={value.comment}
        error={error('comment')}
        onChange={(next) => set('comment', next)}
      />
      <Check label={form.enabled} checked={value.enabled} onChange={(next) => set('enabled', next)} />
    </>
  )
}
