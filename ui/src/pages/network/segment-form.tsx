// A segment as a form, for new ones and for changes.

import type { Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import type { Edit } from '@/components/edit'
import { numberOf, textOf } from '@/components/form'
import { FormFields } from '@/components/form-fields'
import { resource } from '@/components/resource'
import { useText } from '@/text'

export const allSegments = resource('/segments/{id}', {
  key: 'segment',
  type: 'segment',
  fields: (segment: Schemas['Segment'] | null) => ({
    name: segment?.name ?? '',
    interface: segment?.interface ?? '',
    vlan_id: String(segment?.vlan_id ?? ''),
    cidr: segment?.cidr ?? '',
    trust_class: segment?.trust_class ?? '',
    isolation: segment?.isolation ?? false,
    dhcp: segment?.dhcp ?? false,
  }),
  body: (form): Schemas['SegmentInput'] => ({
    name: form.name.trim(),
    interface: textOf(form.interface),
    vlan_id: numberOf(form.vlan_id),
    cidr: textOf(form.cidr),
    trust_class: textOf(form.trust_class),
    isolation: form.isolation,
    dhcp: form.dhcp,
  }),
})

type SegmentForm = ReturnType<typeof allSegments.fields>

export function SegmentFields({ edit }: { edit: Edit<SegmentForm> }) {
  const words = useText().network.segments
  const interfaces = useGet('/interfaces', {}, { every: false }).data?.data ?? []
  const classes = useGet('/trust-classes', {}, { every: false }).data?.data ?? []
  const byName = classes.some((each) => each.name === edit.draft.value.trust_class)
  return (
    <FormFields
      draft={edit.draft}
      texts={words.fields}
      error={edit.problems}
      fields={[
        { field: 'name', required: true },
        {
          field: 'interface',
          kind: 'select',
          options: [
            ['', '-'],
            ...interfaces
              .filter((each) => each.role !== 'loopback' && each.role !== 'tunnel')
              .map((each) => [each.name, each.name] as const),
          ],
        },
        { field: 'vlan_id', kind: 'number', min: 1, max: 4094 },
        { field: 'cidr', required: true },
        {
          field: 'trust_class',
          kind: 'select',
          options: [
            ['', words.noTrust],
            // The daemon takes a name as well as an id, and keeps what it got.
            ...classes.map((each) => [byName ? each.name : each.id, each.name] as const),
          ],
        },
        { field: 'isolation', kind: 'check' },
        { field: 'dhcp', kind: 'check' },
      ]}
    />
  )
}
