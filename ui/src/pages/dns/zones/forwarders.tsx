// Forwarders: resolvers for a domain and all names below it.

import type { Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { FieldList } from '@/components/form-fields'
import { ObjectList, type FormProps } from '@/components/object-list'
import { resource } from '@/components/resource'
import { useText } from '@/text'
import { OnOff } from '../lists/rewrites'

type Fields = Schemas['DnsForwarderInput']

const forwarders = resource('/dns/forwarders/{id}', {
  type: 'dns_forwarder',
  key: 'forwarder',
  name: (row) => row.domain,
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
})

export function Forwarders() {
  const text = useText()
  const { zones } = text.dns
  const words = zones.forwarders
  const presets = useGet('/dns/presets', {}, { every: 60_000 }).data?.data ?? []
  const presetName = (id: string) => presets.find((each) => each.id === id)?.name ?? id
  return (
    <ObjectList
      resource={forwarders}
      words={words}
      toggles
      columns={[
        {
          head: zones.columns.domain,
          sort: 'domain',
          bare: true,
          cell: (row) => <span className="med breaks">{row.domain}</span>,
        },
        {
          head: zones.columns.upstreams,
          cell: (row) =>
            row.preset ? (
              words.presetOf(presetName(row.preset))
            ) : (
              <span className="mono sm breaks">{row.upstreams.join(', ')}</span>
            ),
        },
        {
          head: zones.columns.protocol,
          sort: 'protocol',
          cell: (row) => words.protocols[row.protocol] ?? row.protocol,
        },
        {
          head: zones.columns.egress,
          sort: 'egress',
          cell: (row) => (row.egress === 'auto' ? text.dns.log.defaultRoute : row.egress),
        },
        { head: zones.columns.dnssec, sort: 'dnssec', cell: (row) => (row.dnssec ? zones.validated : '-') },
        { head: zones.columns.priority, sort: 'priority', numeric: true },
        { head: zones.columns.state, sort: 'enabled', cell: (row) => <OnOff on={row.enabled} /> },
      ]}
      form={(props) => <ForwarderForm {...props} />}
    />
  )
}

function ForwarderForm({ draft, error }: FormProps<Fields>) {
  const text = useText()
  const words = text.dns.zones.forwarders
  const presets = useGet('/dns/presets', {}, { every: 60_000 }).data?.data ?? []
  const proxies = useGet('/proxies', {}, { every: 60_000 }).data?.data ?? []
  const own = draft.value.preset === null
  return (
    <FieldList
      draft={draft}
      error={error}
      fields={[
        { field: 'domain', label: words.domain, hint: words.domainHint, input: { autoCapitalize: 'none' } },
        {
          field: 'preset',
          kind: 'choice',
          nullable: true,
          label: words.preset,
          options: [['', words.noPreset], ...presets.map((each) => [each.id, each.name] as const)],
        },
        own && {
          field: 'upstreams',
          kind: 'lines',
          wide: true,
          label: words.upstreams,
          hint: words.upstreamsHint,
        },
        own && {
          field: 'protocol',
          kind: 'choice',
          label: words.protocol,
          options: Object.entries(words.protocols),
        },
        own && { field: 'tls_name', nullable: true, label: words.tlsName },
        {
          field: 'bootstrap',
          kind: 'lines',
          rows: 2,
          label: words.bootstrap,
          hint: text.dns.editor.onePerLine,
        },
        { field: 'egress', label: words.egress, hint: words.egressHint },
        {
          field: 'proxy',
          kind: 'choice',
          nullable: true,
          label: words.proxy,
          options: [['', text.common.none], ...proxies.map((each) => [each.id, each.name] as const)],
        },
        { field: 'priority', kind: 'number', label: words.priority, min: 0 },
        { field: 'dnssec', kind: 'check', label: words.dnssec },
        { field: 'enabled', kind: 'check', label: words.enabled },
      ]}
    />
  )
}
