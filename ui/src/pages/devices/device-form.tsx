// The form of a device.

import { call, client, type Schemas } from '@/api/client'
import { get, useGet } from '@/api/query'
import { useGo } from '@/session/link'
import { useEdit } from '@/components/edit'
import { Select, TextArea, TextField } from '@/components/fields'
import { EditForm } from '@/components/form'
import { fillWith, MacField } from '@/components/hosts/mac-field'
import { PickMany } from '@/components/picker'
import { useText } from '@/text'
import { PrivacyClassChoice, ProfileChoice, TrustClassChoice, wordsOf } from './form-parts'

type Device = Schemas['Device']

/** What the form edits, as people write it. */
export type DeviceFields = {
  name: string
  mac: string
  macs: string
  hostname: string
  trust_class: string | null
  privacy_class: string | null
  profile: string | null
  status: Schemas['DeviceStatusInput']
  groups: string[]
  tags: string
  notes: string
}

export const NEW_DEVICE: DeviceFields = {
  name: '',
  mac: '',
  macs: '',
  hostname: '',
  trust_class: null,
  privacy_class: null,
  profile: null,
  status: 'known',
  groups: [],
  tags: '',
  notes: '',
}

export function fieldsOf(device: Device): DeviceFields {
  return {
    name: device.name,
    mac: device.mac ?? '',
    macs: device.macs.join(', '),
    hostname: device.hostname ?? '',
    trust_class: device.trust_class,
    privacy_class: device.privacy_class,
    profile: device.profile,
    status: device.status,
    groups: device.groups ?? [],
    tags: device.tags.join(', '),
    notes: device.notes,
  }
}

export function inputOf(fields: DeviceFields): Schemas['DeviceInput'] {
  return {
    ...fields,
    mac: fields.mac.trim() || null,
    macs: wordsOf(fields.macs),
    hostname: fields.hostname.trim() || null,
    tags: wordsOf(fields.tags),
  }
}

interface Props {
  device?: Device
  etag?: string | null
}

export function DeviceForm({ device, etag = null }: Props) {
  const text = useText()
  const go = useGo()
  const words = text.devices
  const groups = useGet('/device-groups', {}, { every: 60_000 }).data?.data
  const id = device?.id
  const edit = useEdit<DeviceFields, Device>({
    key: `device.${id ?? 'new'}`,
    version: { value: device ? fieldsOf(device) : NEW_DEVICE, etag },
    save: (value, tag) =>
      id
        ? call(
            client.PUT('/devices/{id}', {
              params: { path: { id }, header: tag ? { 'If-Match': tag } : {} },
              body: inputOf(value),
            }),
          )
        : call(client.POST('/devices', { body: inputOf(value) })),
    read: async () => {
      const answer = await get('/devices/{id}', { path: { id: id ?? '' } })
      return { value: fieldsOf(answer.data), etag: answer.etag }
    },
    onSaved: (saved) => {
      if (!id) go(`/devices/${saved.id}`)
    },
  })
  const { value, set } = edit.draft
  return (
    <EditForm edit={edit} isNew={!id} onCancel={id ? undefined : () => go('/devices')}>
      <div className="form form--2 form--fields">
        <TextField
          label={text.common.name}
          value={value.name}
          error={edit.of('name')}
          onChange={(typed) => set('name', typed)}
          required
        />
        <MacField
          label={words.mac}
          value={value.mac}
          error={edit.of('mac')}
          strangers
          onChange={(typed) => set('mac', typed)}
          onChoose={(host) => {
            const filled = fillWith(host, value)
            set('name', filled.name)
            set('hostname', filled.hostname)
          }}
        />
        <TextField
          label={words.macs}
          hint={words.macsHint}
          value={value.macs}
          error={edit.of('macs')}
          spellCheck={false}
          onChange={(typed) => set('macs', typed)}
        />
        <TextField
          label={words.hostname}
          value={value.hostname}
          error={edit.of('hostname')}
          spellCheck={false}
          onChange={(typed) => set('hostname', typed)}
        />
        <Select
          label={words.status}
          value={value.status as string}
          options={Object.entries(words.statuses)}
          hint={words.statusHints[value.status]}
          error={edit.of('status')}
          onChange={(chosen) => set('status', chosen as DeviceFields['status'])}
        />
        <TrustClassChoice
          value={value.trust_class}
          error={edit.of('trust_class')}
          onChange={(chosen) => set('trust_class', chosen)}
        />
        <PrivacyClassChoice
          value={value.privacy_class}
          error={edit.of('privacy_class')}
          onChange={(chosen) => set('privacy_class', chosen)}
        />
        <ProfileChoice
          value={value.profile}
          error={edit.of('profile')}
          onChange={(chosen) => set('profile', chosen)}
        />
        <PickMany
          key={groups ? 'there' : 'loading'}
          label={words.groups}
          all={groups ?? []}
          chosen={value.groups}
          onChange={(chosen) => set('groups', chosen)}
        />
        <TextField
          label={words.tags}
          hint={words.commas}
          value={value.tags}
          error={edit.of('tags')}
          onChange={(typed) => set('tags', typed)}
        />
        <div className="wide">
          <TextArea
            label={words.notes}
            rows={3}
            value={value.notes}
            error={edit.of('notes')}
            onChange={(typed) => set('notes', typed)}
          />
        </div>
      </div>
    </EditForm>
  )
}
