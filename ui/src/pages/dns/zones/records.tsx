// Records of primary zones.

import type { Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { useSearchParams } from '@/session/search-params'
import { FieldList } from '@/components/form-fields'
import { ObjectList, type FormProps } from '@/components/object-list'
import { resource } from '@/components/resource'
import { Icon } from '@/components/icons'
import { useText } from '@/text'
import { OnOff } from '../lists/rewrites'

type Fields = Schemas['DnsRecordInput']

const TYPES = 'A AAAA CNAME MX TXT SRV PTR NS CAA HTTPS SVCB DS'.split(' ')
const WITH_PRIORITY: readonly string[] = ['MX', 'SRV', 'HTTPS', 'SVCB']

/** The whole name of a record: `nas.lan`. */
function fullName({ name, zone }: { name: string; zone: string }): string {
  return name === '@' ? zone : `${name}.${zone}`
}

const records = resource('/dns/records/{id}', {
  type: 'dns_record',
  key: 'record',
  name: fullName,
  blank: { zone: '', name: '@', type: 'A', value: '', ttl: 300, priority: null, enabled: true },
})

export function Records() {
  const text = useText()
  const { zones } = text.dns
  const [search, change] = useSearchParams()
  const zone = search.zone
  return (
    <ObjectList
      resource={records}
      words={zones.records}
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
          head: zones.columns.record,
          sort: fullName,
          bare: true,
          cell: (row) => (
            <span className="med breaks">
              {row.name === '@' ? row.zone : row.name}
              {row.name === '@' ? null : <span className="dim">.{row.zone}</span>}
            </span>
          ),
        },
        { head: zones.columns.recordType, sort: 'type' },
        {
          head: zones.columns.value,
          sort: (row) => row.value,
          cell: (row) => (
            <span className="mono sm breaks">
              {row.priority === null ? '' : `${row.priority} `}
              {row.value}
            </span>
          ),
        },
        { head: zones.columns.ttl, sort: 'ttl', numeric: true },
        { head: zones.columns.state, sort: 'enabled', cell: (row) => <OnOff on={row.enabled} /> },
      ]}
      form={(props) => <RecordForm {...props} />}
    />
  )
}

function RecordForm({ draft, error }: FormProps<Fields>) {
  const words = useText().dns.zones.records
  const zones = (useGet('/dns/zones').data?.data ?? []).filter((zone) => zone.type === 'primary')
  const { value } = draft
  return (
    <>
      {zones.length === 0 ? <p className="wide mid">{words.noZone}</p> : null}
      <FieldList
        draft={draft}
        error={error}
        fields={[
          {
            field: 'zone',
            kind: 'choice',
            label: words.zone,
            options: [
              ...(value.zone === '' ? ([['', '-']] as const) : []),
              ...zones.map((zone) => [zone.name, zone.name] as const),
            ],
          },
          { field: 'name', label: words.name, hint: words.nameHint, input: { autoCapitalize: 'none' } },
          { field: 'type', kind: 'choice', label: words.type, options: TYPES.map((type) => [type, type]) },
          { field: 'value', label: words.value, hint: words.valueHint },
          { field: 'ttl', kind: 'number', label: words.ttl, min: 0 },
          WITH_PRIORITY.includes(value.type) && {
            field: 'priority',
            kind: 'number',
            nullable: true,
            label: words.priority,
            min: 0,
          },
          { field: 'enabled', kind: 'check', label: words.enabled },
        ]}
      />
    </>
  )
}
