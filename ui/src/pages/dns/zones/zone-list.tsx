// Zones: where their answers come from, how they are signed, and how transfers go.

import { call, client, type Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { useSearchParams } from '@/session/search-params'
import { Check, Select, TextArea, TextField } from '@/components/fields'
import { StateWord } from '@/components/state'
import { Age, Clock } from '@/components/time'
import { useText } from '@/text'
import { ResourceSection, useLines, type FormProps, type Resource } from '../editor'
import { OnOff } from '../lists/rewrites'
import { numberOf } from '../numbers'

type Row = Schemas['DnsZone']
type Input = Schemas['DnsZoneInput']
/** An empty key keeps the one that is stored. */
type Fields = Omit<Input, 'signing_key'> & { signing_key: string; has_key: boolean; ds: string | null }

function input(fields: Fields): Input {
  const { name, type, enabled, ttl, soa, upstreams, dnssec, dnskey, signing_key } = fields
  const rest = { name, type, enabled, ttl, soa, upstreams, dnssec, dnskey }
  return (signing_key === '' ? rest : { ...rest, signing_key }) as Input
}

const resource: Resource<Row, Fields> = {
  type: 'dns_zone',
  key: 'zone',
  blank: {
    name: '',
    type: 'primary',
    enabled: true,
    ttl: 300,
    soa: { mname: null, rname: null, refresh: 86_400, retry: 7200, expire: 3_600_000, minimum: 300 },
    upstreams: [],
    dnssec: false,
    signing_key: '',
    dnskey: null,
    has_key: false,
    ds: null,
  },
  name: (row) => row.name,
  fields: ({ name, type, enabled, ttl, soa, upstreams, dnssec, dnskey, has_signing_key, ds }) => ({
    name,
    type,
    enabled,
    ttl,
    soa,
    upstreams,
    dnssec,
    signing_key: '',
    dnskey,
    has_key: has_signing_key,
    ds: ds ?? null,
  }),
  get: (id) => call(client.GET('/dns/zones/{id}', { params: { path: { id } } })),
  create: (fields) => call(client.POST('/dns/zones', { body: input(fields) })),
  update: (id, fields, etag) =>
    call(
      client.PUT('/dns/zones/{id}', {
        params: { path: { id }, header: etag === null ? {} : { 'If-Match': etag } },
        body: input(fields),
      }),
    ),
  remove: (id) => call(client.DELETE('/dns/zones/{id}', { params: { path: { id } } })),
  secrets: ['signing_key'],
}

export function ZoneList() {
  const text = useText()
  const { zones } = text.dns
  const query = useGet('/dns/zones')
  const [, change] = useSearchParams()
  return (
    <ResourceSection
      resource={resource}
      words={zones.zones}
      query={query}
      primary
      toggles
      columns={[
        {
          accessorKey: 'name',
          header: zones.columns.name,
          meta: { label: '' },
          cell: ({ row: { original } }) => (
            <button type="button" className="plainlink med" onClick={() => change({ zone: original.name })}>
              {original.name}
            </button>
          ),
        },
        {
          accessorKey: 'type',
          header: zones.columns.type,
          cell: ({ row: { original } }) => (
            <span className="two">
              <span>{zones.types[original.type] ?? original.type}</span>
              {original.upstreams.length > 0 ? (
                <small className="mono">{original.upstreams.join(', ')}</small>
              ) : null}
            </span>
          ),
        },
        {
          id: 'records',
          accessorKey: 'records_count',
          header: zones.columns.records,
          meta: { numeric: true },
          cell: ({ row }) => numberOf(row.original.records_count),
        },
        {
          accessorKey: 'serial',
          header: zones.columns.serial,
          meta: { numeric: true },
          cell: ({ row: { original } }) => (original.serial === null ? '-' : original.serial),
        },
        {
          accessorKey: 'dnssec',
          header: zones.columns.dnssec,
          cell: ({ row: { original } }) =>
            original.dnssec
              ? original.type === 'primary'
                ? zones.signed
                : zones.validated
              : original.type === 'primary'
                ? zones.unsigned
                : '-',
        },
        {
          id: 'transfer',
          header: zones.columns.transfer,
          enableSorting: false,
          cell: ({ row }) => <Transfer zone={row.original} />,
        },
        {
          accessorKey: 'enabled',
          header: zones.columns.state,
          cell: ({ row }) => <OnOff on={row.original.enabled} />,
        },
      ]}
      form={(props) => <ZoneForm {...props} />}
    />
  )
}

function Transfer({ zone }: { zone: Row }) {
  const { zones } = useText().dns
  if (zone.type !== 'secondary') return '-'
  return (
    <span className="two">
      {zone.serial === null ? <StateWord state="down">{zones.noData}</StateWord> : null}
      {zone.error ? <StateWord state="degraded">{zone.error}</StateWord> : null}
      <small>
        {zones.transferred} <Age time={zone.last_updated} />, {zones.checked} <Age time={zone.last_checked} />
        , {zones.expires} <Clock time={zone.expires_at} />
      </small>
    </span>
  )
}

function ZoneForm({ draft, error }: FormProps<Fields>) {
  const text = useText()
  const { zones } = text.dns
  const words = zones.zones
  const { value, set } = draft
  const lines = useLines(value.upstreams, (next) => set('upstreams', next))
  const primary = value.type === 'primary'
  const number = (field: 'refresh' | 'retry' | 'expire' | 'minimum') => (
    <TextField
      label={words[field]}
      type="number"
      min={0}
      value={String(value.soa[field])}
      error={error(`soa.${field}`)}
      onChange={(next) => set('soa', { ...value.soa, [field]: Number(next) })}
    />
  )
  return (
    <>
      <TextField
        label={words.name}
        value={value.name}
        error={error('name')}
        spellCheck={false}
        autoCapitalize="none"
        onChange={(next) => set('name', next)}
      />
      <Select
        label={words.type}
        value={value.type}
        error={error('type')}
        options={Object.entries(zones.types) as [Fields['type'], string][]}
        onChange={(next) => set('type', next)}
      />
      {primary ? (
        <TextField
          label={words.ttl}
          type="number"
          min={0}
          value={String(value.ttl)}
          error={error('ttl')}
          onChange={(next) => set('ttl', Number(next))}
        />
      ) : (
        <div className="wide">
          <TextArea
            label={words.upstreams}
            hint={words.upstreamsHint}
            rows={3}
            value={lines.value}
            error={error('upstreams')}
            onChange={lines.onChange}
          />
        </div>
      )}
      {value.type === 'secondary' ? null : (
        <Check
          label={primary ? words.sign : words.validate}
          checked={value.dnssec}
          onChange={(next) => set('dnssec', next)}
        />
      )}
      {primary && value.dnssec ? (
        <TextField
          label={words.key}
          hint={value.has_key ? words.keyKept : words.keyHint}
          type="password"
          autoComplete="off"
          value={value.signing_key}
          error={error('signing_key')}
          onChange={(next) => set('signing_key', next)}
        />
      ) : null}
      {primary ? (
        <details className="wide fold">
          <summary>{words.soa}</summary>
          <div className="form form--2">
            <TextField
              label={words.mname}
              value={value.soa.mname ?? ''}
              error={error('soa.mname')}
              onChange={(next) => set('soa', { ...value.soa, mname: next === '' ? null : next })}
            />
            <TextField
              label={words.rname}
              value={value.soa.rname ?? ''}
              error={error('soa.rname')}
              onChange={(next) => set('soa', { ...value.soa, rname: next === '' ? null : next })}
            />
            {number('refresh')}
            {number('retry')}
            {number('expire')}
            {number('minimum')}
          </div>
        </details>
      ) : null}
      {value.ds || value.dnskey ? (
        <dl className="facts dns-facts wide">
          {value.ds ? (
            <>
              <dt>{zones.ds}</dt>
              <dd className="mono sm">{value.ds}</dd>
            </>
          ) : null}
          {value.dnskey ? (
            <>
              <dt>{zones.dnskey}</dt>
              <dd className="mono sm">{value.dnskey}</dd>
            </>
          ) : null}
        </dl>
      ) : null}
      <Check label={words.enabled} checked={value.enabled} onChange={(next) => set('enabled', next)} />
    </>
  )
}
