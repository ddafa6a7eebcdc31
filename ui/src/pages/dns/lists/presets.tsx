// Sets of resolvers that forwarders and profiles can name.

import type { Schemas } from '@/api/client'
import { FieldList } from '@/components/form-fields'
import { ObjectList, type FormProps } from '@/components/object-list'
import { resource } from '@/components/resource'
import { Tag } from '@/components/state'
import { TwoLines } from '@/components/two-lines'
import { useText } from '@/text'

type Fields = Schemas['DnsPresetInput']

const resolverPresets = resource('/dns/presets/{id}', {
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
})

export function Presets() {
  const text = useText()
  const { columns, presets, feeds } = text.dns.lists
  return (
    <ObjectList
      resource={resolverPresets}
      words={presets}
      columns={[
        {
          head: columns.name,
          sort: 'name',
          bare: true,
          cell: (row) => (
            <TwoLines second={row.privacy_note}>
              <span className="med">
                {row.name} {row.builtin ? <Tag>{feeds.builtin}</Tag> : null}
              </span>
            </TwoLines>
          ),
        },
        { head: columns.provider, sort: 'provider' },
        { head: columns.protocol, sort: 'mode', cell: (row) => presets.modes[row.mode] },
        {
          head: columns.filtering,
          sort: 'filtering',
          cell: (row) => presets.filterings[row.filtering],
        },
        {
          head: columns.upstreams,
          cell: (row) => <span className="mono sm breaks">{row.upstreams.join(', ')}</span>,
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
  return (
    <FieldList
      draft={draft}
      error={error}
      fields={[
        { field: 'name', label: text.common.name },
        { field: 'provider', label: presets.provider },
        {
          field: 'upstreams',
          kind: 'lines',
          wide: true,
          label: presets.upstreams,
          hint: text.dns.editor.onePerLine,
        },
        { field: 'mode', kind: 'choice', label: presets.mode, options: Object.entries(presets.modes) },
        { field: 'tls_name', nullable: true, label: presets.tlsName },
        {
          field: 'filtering',
          kind: 'choice',
          label: presets.filtering,
          options: Object.entries(presets.filterings),
        },
        { field: 'privacy_note', label: presets.note },
      ]}
    />
  )
}
