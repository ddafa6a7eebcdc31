// Sets of resolvers that forwarders and profiles can name.

import { call, client, type Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { Select, TextArea, TextField } from '@/components/fields'
import { Tag } from '@/components/state'
import { useText } from '@/text'
import { ResourceSection, useLines, type FormProps, type Resource } from '../editor'

type Row = Schemas['DnsPreset']
type Fields = Schemas['DnsPresetInput']

const resource: Resource<Row, Fields> = {
  type: 'dns_preset',
  key: 'preset',
  blank: {
    name: '',
    provider: '',
    upstreams: [],
    mode: 'plain',
    tls_name: null,
    filtering: 'none',
    privacy_note: '',
    builtin: false,
  },
  name: (row) => row.name,
  fields: ({ name, provider, upstreams, mode, tls_name, filtering, privacy_note, builtin }) => ({
    name,
    provider,
    upstreams,
    mode,
    tls_name,
    filtering,
    privacy_note,
    builtin,
  }),
  get: (id) => call(client.GET('/dns/presets/{id}', { params: { path: { id } } })),
  create: (body) => call(client.POST('/dns/presets', { body })),
  update: (id, body, etag) =>
    call(
      client.PUT('/dns/presets/{id}', {
        params: { path: { id }, header: etag === null ? {} : { 'If-Match': etag } },
        body,
      }),
    ),
  remove: (id) => call(client.DELETE('/dns/presets/{id}', { params: { path: { id } } })),
}

export function Presets() {
  const text = useText()
  const { columns, presets, feeds } = text.dns.lists
  const query = useGet('/dns/presets')
  return (
    <ResourceSection
      resource={resource}
      words={presets}
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
              <small>{original.privacy_note}</small>
            </span>
          ),
        },
        { accessorKey: 'provider', header: columns.provider },
        {
          accessorKey: 'mode',
          header: columns.protocol,
          cell: ({ row }) => presets.modes[row.original.mode] ?? row.original.mode,
        },
        {
          accessorKey: 'filtering',
          header: columns.filtering,
          cell: ({ row }) => presets.filterings[row.original.filtering] ?? row.original.filtering,
        },
        {
          id: 'upstreams',
          header: columns.upstreams,
          enableSorting: false,
          cell: ({ row }) => <span className="mono sm breaks">{row.original.upstreams.join(', ')}</span>,
        },
      ]}
      form={(props) => <PresetForm {...props} />}
      locked={(row) => row.builtin}
    />
  )
}

function PresetForm({ draft, error }: FormProps<Fields>) {
  const text = useText()
  const { presets } = text.dns.lists
  const { value, set } = draft
  const lines = useLines(value.upstreams, (next) => set('upstreams', next))
  return (
    <>
      <TextField
        label={text.common.name}
        value={value.name}
        error={error('name')}
        onChange={(next) => set('name', next)}
      />
      <TextField
        label={presets.provider}
        value={value.provider}
        error={error('provider')}
        onChange={(next) => set('provider', next)}
      />
      <div className="wide">
        <TextArea
          label={presets.upstreams}
          hint={text.dns.editor.onePerLine}
          rows={3}
          value={lines.value}
          error={error('upstreams')}
          onChange={lines.onChange}
        />
      </div>
      <Select
        label={presets.mode}
        value={value.mode}
        options={Object.entries(presets.modes) as [Fields['mode'], string][]}
        error={error('mode')}
        onChange={(next) => set('mode', next)}
      />
      <TextField
        label={presets.tlsName}
        value={value.tls_name ?? ''}
        error={error('tls_name')}
        onChange={(next) => set('tls_name', next === '' ? null : next)}
      />
      <Select
        label={presets.filtering}
        value={value.filtering}
        options={Object.entries(presets.filterings) as [Fields['filtering'], string][]}
        error={error('filtering')}
        onChange={(next) => set('filtering', next)}
      />
      <TextField
        label={presets.note}
        value={value.privacy_note}
        error={error('privacy_note')}
        onChange={(next) => set('privacy_note', next)}
      />
    </>
  )
}
