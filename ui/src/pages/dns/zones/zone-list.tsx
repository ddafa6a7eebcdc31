// Zones: where their answers come from, how they are signed, and how transfers go.

import type { Schemas } from '@/api/client'
import { useSearchParams } from '@/session/search-params'
import { Facts } from '@/components/facts'
import { FieldList, partOf } from '@/components/form-fields'
import { ObjectList, type FormProps } from '@/components/object-list'
import { resource } from '@/components/resource'
import { StateWord } from '@/components/state'
import { Age, Clock } from '@/components/time'
import { TwoLines } from '@/components/two-lines'
import { useText } from '@/text'
import { OnOff } from '../lists/rewrites'
import { numberOf } from '../numbers'

type Row = Schemas['DnsZone']
type Input = Schemas['DnsZoneInput']
/** An empty key keeps the one that is stored. */
type Fields = Omit<Input, 'signing_key'> & { signing_key: string; has_key: boolean; ds: string | null }

const dnsZones = resource('/dns/zones/{id}', {
  type: 'dns_zone',
  key: 'zone',
  secrets: ['signing_key'],
  fields: (row: Row | null): Fields => ({
    name: row?.name ?? '',
    type: row?.type ?? 'primary',
    enabled: row?.enabled ?? true,
    ttl: row?.ttl ?? 300,
    soa: row?.soa ?? {
      mname: null,
      rname: null,
      refresh: 86_400,
      retry: 7200,
      expire: 3_600_000,
      minimum: 300,
    },
    upstreams: row?.upstreams ?? [],
    dnssec: row?.dnssec ?? false,
    signing_key: '',
    dnskey: row?.dnskey ?? null,
    has_key: row?.has_signing_key ?? false,
    ds: row?.ds ?? null,
  }),
  body: ({ name, type, enabled, ttl, soa, upstreams, dnssec, dnskey, signing_key }) => ({
    ...{ name, type, enabled, ttl, soa, upstreams, dnssec, dnskey },
    ...(signing_key === '' ? {} : { signing_key }),
  }),
})

export function ZoneList() {
  const text = useText()
  const { zones } = text.dns
  const [, change] = useSearchParams()
  return (
    <ObjectList
      resource={dnsZones}
      words={zones.zones}
      primary
      toggles
      columns={[
        {
          head: zones.columns.name,
          sort: 'name',
          bare: true,
          cell: (row) => (
            <button type="button" className="plainlink med" onClick={() => change({ zone: row.name })}>
              {row.name}
            </button>
          ),
        },
        {
          head: zones.columns.type,
          sort: 'type',
          cell: (row) => (
            <span className="two">
              <span>{zones.types[row.type]}</span>
              {row.upstreams.length > 0 ? <small className="mono">{row.upstreams.join(', ')}</small> : null}
            </span>
          ),
        },
        {
          head: zones.columns.records,
          sort: 'records_count',
          numeric: true,
          cell: (row) => numberOf(row.records_count),
        },
        {
          head: zones.columns.serial,
          sort: 'serial',
          numeric: true,
          cell: (row) => (row.serial === null ? '-' : row.serial),
        },
        {
          head: zones.columns.dnssec,
          sort: 'dnssec',
          cell: (row) => <Dnssec zone={row} />,
        },
        { head: zones.columns.transfer, cell: (row) => <Transfer zone={row} /> },
        { head: zones.columns.state, sort: 'enabled', cell: (row) => <OnOff on={row.enabled} /> },
      ]}
      form={(props) => <ZoneForm {...props} />}
    />
  )
}

function Transfer({ zone }: { zone: Row }) {
  const { zones } = useText().dns
  if (zone.type !== 'secondary') return '-'
  return (
    <TwoLines
      second={
        <>
          {zones.transferred} <Age time={zone.last_updated} />, {zones.checked}{' '}
          <Age time={zone.last_checked} />, {zones.expires} <Clock time={zone.expires_at} />
        </>
      }
    >
      {zone.serial === null ? <StateWord state="down">{zones.noData}</StateWord> : null}
      {zone.error ? <StateWord state="degraded">{zone.error}</StateWord> : null}
    </TwoLines>
  )
}

function ZoneForm({ draft, error }: FormProps<Fields>) {
  const { zones } = useText().dns
  const words = zones.zones
  const { value } = draft
  const primary = value.type === 'primary'
  const list = (fields: Parameters<typeof FieldList<Fields>>[0]['fields']) => (
    <FieldList draft={draft} error={error} fields={fields} />
  )
  return (
    <>
      {list([
        { field: 'name', label: words.name, input: { autoCapitalize: 'none' } },
        { field: 'type', kind: 'choice', label: words.type, options: Object.entries(zones.types) },
        primary && { field: 'ttl', kind: 'number', label: words.ttl, min: 0 },
        !primary && {
          field: 'upstreams',
          kind: 'lines',
          wide: true,
          label: words.upstreams,
          hint: words.upstreamsHint,
        },
        value.type !== 'secondary' && {
          field: 'dnssec',
          kind: 'check',
          label: primary ? words.sign : words.validate,
        },
        primary &&
          value.dnssec && {
            field: 'signing_key',
            kind: 'secret',
            label: words.key,
            hint: value.has_key ? words.keyKept : words.keyHint,
            input: { autoComplete: 'off' },
          },
      ])}
      {primary ? <StartOfAuthority draft={draft} error={error} /> : null}
      {value.ds || value.dnskey ? <SigningFacts ds={value.ds} dnskey={value.dnskey} /> : null}
      {list([{ field: 'enabled', kind: 'check', label: words.enabled }])}
    </>
  )
}

function StartOfAuthority({ draft, error }: FormProps<Fields>) {
  const words = useText().dns.zones.zones
  const number = (field: 'refresh' | 'retry' | 'expire' | 'minimum') =>
    ({ field, kind: 'number', label: words[field], min: 0 }) as const
  return (
    <details className="wide fold">
      <summary>{words.soa}</summary>
      <div className="form form--2">
        <FieldList
          draft={partOf(draft, 'soa')}
          error={(path) => error(`soa.${path}`)}
          fields={[
            { field: 'mname', nullable: true, label: words.mname },
            { field: 'rname', nullable: true, label: words.rname },
            number('refresh'),
            number('retry'),
            number('expire'),
            number('minimum'),
          ]}
        />
      </div>
    </details>
  )
}

function SigningFacts({ ds, dnskey }: Pick<Fields, 'ds' | 'dnskey'>) {
  const { zones } = useText().dns
  return (
    <Facts
      className="facts dns-facts wide"
      facts={[ds !== '' && [zones.ds, ds, 'mono sm'], dnskey !== '' && [zones.dnskey, dnskey, 'mono sm']]}
    />
  )
}

function Dnssec({ zone }: { zone: Schemas['DnsZone'] }) {
  const { zones } = useText().dns
  const primary = zone.type === 'primary'
  if (zone.dnssec) return <>{primary ? zones.signed : zones.validated}</>
  return <>{primary ? zones.unsigned : '-'}</>
}
