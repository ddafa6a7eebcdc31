// Threat feeds: lists of known bad names that the gateway reads again by itself.

import { call, client, type Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { Check, Select, TextField } from '@/components/fields'
import { StateWord, Tag } from '@/components/state'
import { Age, Clock } from '@/components/time'
import { useText } from '@/text'
import { numberOf } from '../numbers'
import { ResourceSection, type FormProps, type Resource } from '../editor'

type Row = Schemas['ThreatFeed']
type Fields = Schemas['ThreatFeedInput']

const resource: Resource<Row, Fields> = {
  type: 'threat_feed',
  key: 'feed',
  blank: {
    name: '',
    url: '',
    format: 'domains',
    category: 'malware',
    enabled: true,
    interval_h: 24,
    builtin: false,
  },
  name: (row) => row.name,
  fields: ({ name, url, format, category, enabled, interval_h, builtin }) => ({
    name,
    url,
    format,
    category,
    enabled,
    interval_h,
    builtin,
  }),
  get: (id) => call(client.GET('/dns/threat-feeds/{id}', { params: { path: { id } } })),
  create: (body) => call(client.POST('/dns/threat-feeds', { body })),
  update: (id, body, etag) =>
    call(
      client.PUT('/dns/threat-feeds/{id}', {
        params: { path: { id }, header: etag === null ? {} : { 'If-Match': etag } },
        body,
      }),
    ),
  remove: (id) => call(client.DELETE('/dns/threat-feeds/{id}', { params: { path: { id } } })),
}

export function Feeds() {
  const text = useText()
  const { lists } = text.dns
  const { columns, feeds } = lists
  const query = useGet('/dns/threat-feeds')
  return (
    <ResourceSection
      resource={resource}
      words={feeds}
      query={query}
      columns={[
        {
          accessorKey: 'name',
          header: columns.name,
          meta: { label: '' },
          cell: ({ row: { original } }) => (
            <span className="two">
              <span className="med">
                {original.name} {original.builtin ? <Tag>{feeds.builtin}</Tag> : null}
              </span>
              <small className="mono breaks">{original.url}</small>
            </span>
          ),
        },
        {
          accessorKey: 'category',
          header: columns.category,
          cell: ({ row }) => feeds.categories[row.original.category] ?? row.original.category,
        },
        {
          id: 'state',
          header: columns.state,
          accessorFn: (row) => `${String(row.enabled)} ${row.status ?? ''}`,
          cell: ({ row }) => <FeedState row={row.original} />,
        },
        {
          accessorKey: 'entries',
          header: columns.size,
          meta: { numeric: true },
          cell: ({ row: { original } }) => numberOf(original.entries),
        },
        {
          accessorKey: 'last_updated',
          header: columns.updated,
          cell: ({ row: { original } }) =>
            original.last_updated ? <Age time={original.last_updated} /> : '-',
        },
        {
          accessorKey: 'next_update',
          header: columns.next,
          meta: { wide: true },
          cell: ({ row }) => <Clock time={row.original.next_update} />,
        },
      ]}
      form={(props) => <FeedForm {...props} />}
      toggles
      fixed={(row) => row.builtin}
    />
  )
}

function FeedState({ row }: { row: Row }) {
  const { states } = useText().dns.lists
  if (!row.enabled) return <StateWord state="idle">{states.off}</StateWord>
  if (row.error || row.status === 'error')
    return (
      <span className="two">
        <StateWord state="down">{states.error}</StateWord>
        {row.error ? <small className="breaks">{row.error}</small> : null}
      </span>
    )
  if (row.status === null) return <StateWord state="unknown">{states.waiting}</StateWord>
  if (row.status === 'stale') return <StateWord state="degraded">{states.stale}</StateWord>
  return <span className="st st--plain">{row.status === 'ok' ? states.ok : row.status}</span>
}

function FeedForm({ draft, error }: FormProps<Fields>) {
  const text = useText()
  const { feeds, form } = text.dns.lists
  const { value, set } = draft
  return (
    <>
      <TextField
        label={feeds.name}
        value={value.name}
        error={error('name')}
        disabled={value.builtin}
        onChange={(next) => set('name', next)}
      />
      <TextField
        label={feeds.url}
        type="url"
        value={value.url}
        error={error('url')}
        onChange={(next) => set('url', next)}
      />
      <Select
        label={feeds.format}
        value={value.format}
        error={error('format')}
        options={Object.entries(feeds.formats) as [Fields['format'], string][]}
        onChange={(next) => set('format', next)}
      />
      <Select
        label={feeds.category}
        value={value.category}
        error={error('category')}
        options={Object.entries(feeds.categories) as [Fields['category'], string][]}
        onChange={(next) => set('category', next)}
      />
      <TextField
        label={feeds.interval}
        type="number"
        min={1}
        max={720}
        value={String(value.interval_h)}
        error={error('interval_h')}
        onChange={(next) => set('interval_h', Number(next))}
      />
      <Check label={form.enabled} checked={value.enabled} onChange={(next) => set('enabled', next)} />
    </>
  )
}
