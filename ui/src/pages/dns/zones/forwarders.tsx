// Forwarders: resolvers for a domain and all names below it.

import { call, client, type Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { Check, Select, TextArea, TextField } from '@/components/fields'
import { useText } from '@/text'
import { ResourceSection, useLines, type FormProps, type Resource } from '../editor'
import { OnOff } from '../lists/rewrites'

type Row = Schemas['DnsForwarder']
type Fields = Schemas['DnsForwarderInput']

const resource: Resource<Row, Fields> = {
  type: 'dns_forwarder',
  key: 'forwarder',
  blank: {
    domain: '',
    upstreams: [],
    preset: null,
    protocol: 'udp',
    tls_name: null,
    bootstrap: [],
    egress: 'auto',
    proxy: null,
    dnssec: false,
    enabled: true,
    priority: 100,
  },
  name: (row) => row.domain,
  fields: ({
    domain,
    upstreams,
    preset,
    protocol,
    tls_name,
    bootstrap,
    egress,
    proxy,
    dnssec,
    enabled,
    priority,
  }) => ({
    domain,
    upstreams,
    preset,
    protocol,
    tls_name,
    bootstrap,
    egress,
    proxy,
    dnssec,
    enabled,
    priority,
  }),
  get: (id) => call(client.GET('/dns/forwarders/{id}', { params: { path: { id } } })),
  create: (body) => call(client.POST('/dns/forwarders', { body })),
  update: (id, body, etag) =>
    call(
      client.PUT('/dns/forwarders/{id}', {
        params: { path: { id }, header: etag === null ? {} : { 'If-Match': etag } },
        body,
      }),
    ),
  remove: (id) => call(client.DELETE('/dns/forwarders/{id}', { params: { path: { id } } })),
}

export function Forwarders() {
  const text = useText()
  const { zones } = text.dns
  const words = zones.forwarders
  const query = useGet('/dns/forwarders')
  const presets = useGet('/dns/presets', {}, { every: 60_000 }).data?.data ?? []
  const presetName = (id: string) => presets.find((each) => each.id === id)?.name ?? id
  return (
    <ResourceSection
      resource={resource}
      words={words}
      query={query}
      toggles
      columns={[
        {
          accessorKey: 'domain',
          header: zones.columns.domain,
          meta: { label: '' },
          cell: ({ row }) => <span className="med breaks">{row.original.domain}</span>,
        },
        {
          id: 'upstreams',
          header: zones.columns.upstreams,
          enableSorting: false,
          cell: ({ row: { original } }) =>
            original.preset ? (
              words.presetOf(presetName(original.preset))
            ) : (
              <span className="mono sm breaks">{original.upstreams.join(', ')}</span>
            ),
        },
        {
          accessorKey: 'protocol',
          header: zones.columns.protocol,
          cell: ({ row }) => words.protocols[row.original.protocol] ?? row.original.protocol,
        },
        {
          accessorKey: 'egress',
          header: zones.columns.egress,
          cell: ({ row }) =>
            row.original.egress === 'auto' ? text.dns.log.defaultRoute : row.original.egress,
        },
        {
          accessorKey: 'dnssec',
          header: zones.columns.dnssec,
          cell: ({ row }) => (row.original.dnssec ? zones.validated : '-'),
        },
        { accessorKey: 'priority', header: zones.columns.priority, meta: { numeric: true } },
        {
          accessorKey: 'enabled',
          header: zones.columns.state,
          cell: ({ row }) => <OnOff on={row.original.enabled} />,
        },
      ]}
      form={(props) => <ForwarderForm {...props} />}
    />
  )
}

function ForwarderForm({ draft, error }: FormProps<Fields>) {
  const text = useText()
  const words = text.dns.zones.forwarders
  const { value, set } = draft
  const presets = useGet('/dns/presets', {}, { every: 60_000 }).data?.data ?? []
  const proxies = useGet('/proxies', {}, { every: 60_000 }).data?.data ?? []
  const upstreams = useLines(value.upstreams, (next) => set('upstreams', next))
  const bootstrap = useLines(value.bootstrap, (next) => set('bootstrap', next))
  return (
    <>
      <TextField
        label={words.domain}
        hint={words.domainHint}
        value={value.domain}
        error={error('domain')}
        spellCheck={false}
        autoCapitalize="none"
        onChange={(next) => set('domain', next)}
      />
      <Select
        label={words.preset}
        value={value.preset ?? ''}
        error={error('preset')}
        options={[['', words.noPreset], ...presets.map((each) => [each.id, each.name] as const)]}
        onChange={(next) => set('preset', next === '' ? null : next)}
      />
      {value.preset === null ? (
        <>
          <div className="wide">
            <TextArea
              label={words.upstreams}
              hint={words.upstreamsHint}
              rows={3}
              value={upstreams.value}
              error={error('upstreams')}
              onChange={upstreams.onChange}
            />
          </div>
          <Select
            label={words.protocol}
            value={value.protocol}
            error={error('protocol')}
            options={Object.entries(words.protocols) as [Fields['protocol'], string][]}
            onChange={(next) => set('protocol', next)}
          />
          <TextField
            label={words.tlsName}
            value={value.tls_name ?? ''}
            error={error('tls_name')}
            onChange={(next) => set('tls_name', next === '' ? null : next)}
          />
        </>
      ) : null}
      <TextArea
        label={words.bootstrap}
        hint={text.dns.editor.onePerLine}
        rows={2}
        value={bootstrap.value}
        error={error('bootstrap')}
        onChange={bootstrap.onChange}
      />
      <TextField
        label={words.egress}
        hint={words.egressHint}
        value={value.egress}
        error={error('egress')}
        onChange={(next) => set('egress', next)}
      />
      <Select
        label={words.proxy}
        value={value.proxy ?? ''}
        error={error('proxy')}
        options={[['', text.common.none], ...proxies.map((each) => [each.id, each.name] as const)]}
        onChange={(next) => set('proxy', next === '' ? null : next)}
      />
      <TextField
        label={words.priority}
        type="number"
        min={0}
        value={String(value.priority)}
        error={error('priority')}
        onChange={(next) => set('priority', Number(next))}
      />
      <Check label={words.dnssec} checked={value.dnssec} onChange={(next) => set('dnssec', next)} />
      <Check label={words.enabled} checked={value.enabled} onChange={(next) => set('enabled', next)} />
    </>
  )
}
