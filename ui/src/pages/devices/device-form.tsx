// The form of a device.

import type { Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { useGo } from '@/session/link'
import type { Edit } from '@/components/edit'
import { EditForm, wordsOf } from '@/components/form'
import { FieldList } from '@/components/form-fields'
import { fillWith, MacField } from '@/components/hosts/mac-field'
import { PickMany } from '@/components/picker'
import { resource, useObjectEdit, type Stored } from '@/components/resource'
import { useText } from '@/text'
import { inherited, PrivacyClassChoice, ProfileChoice, TrustClassChoice } from './form-parts'

type Device = Schemas['Device']

export const allDevices = resource('/devices/{id}', {
  key: 'device',
  type: 'device',
  fields: (device: Device | null) => ({
    name: device?.name ?? '',
    mac: device?.mac ?? '',
    macs: device?.macs.join(', ') ?? '',
    hostname: device?.hostname ?? '',
    trust_class: device?.trust_class ?? null,
    privacy_class: device?.privacy_class ?? null,
    profile: device?.profile ?? null,
    status: device?.status ?? 'known',
    groups: device?.groups ?? [],
    tags: device?.tags.join(', ') ?? '',
    notes: device?.notes ?? '',
  }),
  body: (fields) => ({
    ...fields,
    mac: fields.mac.trim() || null,
    macs: wordsOf(fields.macs),
    hostname: fields.hostname.trim() || null,
    tags: wordsOf(fields.tags),
  }),
})

type DeviceFields = ReturnType<typeof allDevices.fields>

export function DeviceForm({ stored }: { stored: Stored<Device> | null }) {
  const go = useGo()
  const edit = useObjectEdit(allDevices, stored, {
    onSaved: (saved) => {
      if (!stored) go(`/devices/${saved.id}`)
    },
  })
  return (
    <EditForm edit={edit} isNew={!stored} onCancel={stored ? undefined : () => go('/devices')}>
      <div className="form form--2 form--fields">
        <DeviceFields edit={edit} />
      </div>
    </EditForm>
  )
}

function DeviceFields({ edit }: { edit: Edit<DeviceFields> }) {
  const text = useText()
  const words = text.devices
  const groups = useGet('/device-groups', {}, { every: 60_000 }).data?.data
  const { draft } = edit
  const { value, set } = draft
  return (
    <FieldList
      draft={draft}
      error={edit.of}
      fields={[
        { field: 'name', label: text.common.name, required: true },
        {
          field: 'mac',
          label: words.mac,
          render: (field) => (
            <MacField
              {...field}
              strangers
              onChoose={(host) => {
                const filled = fillWith(host, value)
                set('name', filled.name)
                set('hostname', filled.hostname)
              }}
            />
          ),
        },
        { field: 'macs', label: words.macs, hint: words.macsHint },
        { field: 'hostname', label: words.hostname },
        {
          field: 'status',
          kind: 'choice',
          label: words.status,
          hint: words.statusHints[value.status],
          options: Object.entries(words.statuses),
        },
        inherited(draft, 'trust_class', TrustClassChoice),
        inherited(draft, 'privacy_class', PrivacyClassChoice),
        inherited(draft, 'profile', ProfileChoice),
        {
          field: 'groups',
          render: () => (
            <PickMany
              key={groups ? 'there' : 'loading'}
              label={words.groups}
              all={groups ?? []}
              chosen={value.groups}
              onChange={(chosen) => set('groups', chosen)}
            />
          ),
        },
        { field: 'tags', label: words.tags, hint: words.commas },
        { field: 'notes', kind: 'area', rows: 3, wide: true, label: words.notes },
      ]}
    />
  )
}
