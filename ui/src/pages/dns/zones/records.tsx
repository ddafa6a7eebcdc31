// Records of primary zones.

import { call, client, type Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { useSearchParams } from '@/session/search-params'
import { Check, Select, TextField } from '@/components/fields'
import { Icon } from '@/components/icons'
import { useText } from '@/text'
import { ResourceSection, type FormProps, type Resource } from '../editor'
import { OnOff } from '../lists/rewrites'

type Row = Schemas['DnsRecord']
type Fields = Schemas['DnsRecordInput']

const TYPES: Fields['type'][] = [
  'A',
  'AAAA',
  'CNAME',
  'MX',
  'TXT',
  'SRV',
  'PTR',
  'NS',
  'CAA',
  'HTTPS',
  'SVCB',
  'DS',
]
const WITH_PRIORITY: readonly string[] = ['MX', 'SRV', 'HTTPS', 'SVCB']

/** The whole name of a record: `nas.lan`. */
function fullName({ name, zone }: { name: string; zone: string }): string {
  return name === '@' ? zone : `${name}.${zone}`
}

const resource: Resource<Row, Fields> = {
  type: 'dns_record',
  key: 'record',
  blank: { zone: '', name: '@', type: 'A', value: '', ttl: 300, priority: null, enabled: true },
  name: fullName,
  fields: ({ zone, name, type, value, ttl, priority, enabled }) => ({
    zone,
    name,
    type,
    value,
    ttl,
    priority,
    enabled,
  }),
  get: (id) => call(client.GET('/dns/records/{id}', { params: { path: { id } } })),
  create: (body) => call(client.POST('/dns/records', { body })),
  update: (id, body, etag) =>
    call(
      client.PUT('/dns/records/{id}', {
        params: { path: { id }, header: etag === null ? {} : { 'If-Match': etag } },
        body,
      }),
    ),
  remove: (id) => call(client.DELETE('/dns/records/{id}', { params: { path: { id } } })),
}

export function Records() {
  const text = useText()
  const { zones } = text.dns
  const query = useGet('/dns/records')
  const [search, change] = useSearchParams()
  const zone = search.zone
  return (
    <ResourceSection
      resource={resource}
      words={zones.records}
      query={query}
      toggles
      filter={zone === undefined ? undefined : (row) => row.zone === zone}
      extra={
        zone === undefined ? null : (
          <div className="filters">
            <span className="flt flt--on">
              {zones.columns.zone} <b>{zone}</b>
              <button
                type="button"
                className="x"
                aria-label={zones.allZones}
                onClick={() => change({ zone: undefined })}
              >
                <Icon name="x" />
              </button>
            </span>
          </div>
        )
      }
      columns={[
        {
          id: 'record',
          header: zones.columns.record,
          accessorFn: fullName,
          meta: { label: '' },
          cell: ({ row: { original } }) => (
            <span className="med breaks">
              {original.name === '@' ? original.zone : original.name}
              {original.name === '@' ? null : <span className="dim">.{original.zone}</span>}
            </span>
          ),
        },
        { accessorKey: 'type', header: zones.columns.recordType },
        {
          id: 'value',
          header: zones.columns.value,
          accessorFn: (row) => row.value,
          cell: ({ row: { original } }) => (
            <span className="mono sm breaks">
              {original.priority === null ? '' : `${original.priority} `}
              {original.value}
            </span>
          ),
        },
        { accessorKey: 'ttl', header: zones.columns.ttl, meta: { numeric: true } },
        {
          accessorKey: 'enabled',
          header: zones.columns.state,
          cell: ({ row }) => <OnOff on={row.original.enabled} />,
        },
      ]}
      form={(props) => <RecordForm {...props} />}
    />
  )
}

function RecordForm({ draft, error }: FormProps<Fields>) {
  const text = useText()
  const { records } = text.dns.zones
  const zones = (useGet('/dns/zones').data?.data ?? []).filter((zone) => zone.type === 'primary')
  const { value, set } = draft
  return (
    <>
      {zones.length === 0 ? <p className="wide mid">{records.noZone}</p> : null}
      <Select
        label={records.zone}
        value={value.zone}
        error={error('zone')}
        options={[
          ...(value.zone === '' ? ([['', '-']] as const) : []),
          ...zones.map((zone) => [zone.name, zone.name] as const),
        ]}
        onChange={(next) => set('zone', next)}
      />
      <TextField
        label={records.name}
        hint={records.nameHint}
        value={value.name}
        error={error('name')}
        spellCheck={false}
        autoCapitalize="none"
        onChange={(next) => set('name', next)}
      />
      <Select
        label={records.type}
        value={value.type}
        error={error('type')}
        options={TYPES.map((type) => [type, type] as const)}
        onChange={(next) => set('type', next)}
      />
      <TextField
        label={records.value}
        hint={records.valueHint}
        value={value.value}
        error={error('value')}
        spellCheck={false}
        onChange={(next) => set('value', next)}
      />
      <TextField
        label={records.ttl}
        type="number"
        min={0}
        value={String(value.ttl)}
        error={error('ttl')}
        onChange={(next) => set('ttl', Number(next))}
      />
      {WITH_PRIORITY.includes(value.type) ? (
        <TextField
          label={records.priority}
          type="number"
          min={0}
          value={value.priority === null ? '' : String(value.priority)}
          error={error('priority')}
          onChange={(next) => set('priority', next === '' ? null : Number(next))}
        />
      ) : null}
      <Check label={records.enabled} checked={value.enabled} onChange={(next) => set('enabled', next)} />
    </>
  )
}
