// Settings of Bluetooth, and of the phone as an uplink.

import type { Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { EditForm, numberOf, textOf, wordsOf, type Values } from '@/components/form'
import { FormFields } from '@/components/form-fields'
import { resource, useObjectEdit } from '@/components/resource'
import { Loaded } from '@/components/section'
import { useText } from '@/text'

type Settings = Schemas['BluetoothSettings']
type Failover = Schemas['BluetoothFailover']

const settingsResource = resource('/bluetooth/settings', {
  key: 'bluetooth-settings',
  fields: (settings): Values => ({
    auto_power: settings?.auto_power ?? false,
    discoverable_timeout: String(settings?.discoverable_timeout ?? 120),
    allowed_macs: (settings?.allowed_macs ?? []).join('\n'),
    nap_segment: settings?.nap_segment ?? '',
  }),
  body: (values) => ({
    auto_power: values.auto_power === true,
    discoverable_timeout: numberOf(values.discoverable_timeout ?? ''),
    allowed_macs: wordsOf(values.allowed_macs ?? ''),
    nap_segment: textOf(values.nap_segment ?? ''),
  }),
})

const failoverResource = resource('/bluetooth/failover', {
  key: 'bluetooth-failover',
  fields: (failover): Values => ({
    enabled: failover?.enabled ?? false,
    device_mac: failover?.device_mac ?? '',
    priority: String(failover?.priority ?? 250),
    metered: failover?.metered ?? true,
    start_after_sec: String(failover?.start_after_sec ?? 30),
  }),
  body: (values) => ({
    enabled: values.enabled === true,
    device_mac: textOf(values.device_mac ?? ''),
    priority: numberOf(values.priority ?? ''),
    metered: values.metered === true,
    start_after_sec: numberOf(values.start_after_sec ?? ''),
  }),
})

export function SettingsForm() {
  const query = useGet('/bluetooth/settings', {}, { every: false })
  return (
    <Loaded query={query}>
      {(settings) => <SettingsFields settings={settings} etag={query.data?.etag ?? null} />}
    </Loaded>
  )
}

function SettingsFields({ settings, etag }: { settings: Settings; etag: string | null }) {
  const words = useText().bluetooth
  const segments = useGet('/segments', {}, { every: false }).data?.data ?? []
  const edit = useObjectEdit(settingsResource, { data: settings, etag }, { key: 'bluetooth.settings' })
  const names = segments.map(({ name }) => [name, name] as const)
  return (
    <EditForm edit={edit}>
      <FormFields
        draft={edit.draft}
        texts={words.settingFields}
        error={edit.problems}
        fields={[
          { field: 'auto_power', kind: 'check' },
          { field: 'discoverable_timeout', kind: 'number', required: true, min: 0, max: 86_400 },
          { field: 'nap_segment', kind: 'select', options: [['', '-'], ...names] },
          { field: 'allowed_macs', kind: 'area', rows: 3 },
        ]}
      />
    </EditForm>
  )
}

export function FailoverForm() {
  const query = useGet('/bluetooth/failover', {}, { every: false })
  return (
    <Loaded query={query}>
      {(failover) => <FailoverFields failover={failover} etag={query.data?.etag ?? null} />}
    </Loaded>
  )
}

function FailoverFields({ failover, etag }: { failover: Failover; etag: string | null }) {
  const words = useText().bluetooth
  const edit = useObjectEdit(failoverResource, { data: failover, etag }, { key: 'bluetooth.failover' })
  return (
    <EditForm edit={edit}>
      <FormFields
        draft={edit.draft}
        texts={words.failoverFields}
        error={edit.problems}
        fields={[
          { field: 'enabled', kind: 'check' },
          { field: 'device_mac' },
          { field: 'priority', kind: 'number', required: true, min: 0, max: 65_535 },
          { field: 'start_after_sec', kind: 'number', required: true, min: 0, max: 86_400 },
          { field: 'metered', kind: 'check' },
        ]}
      />
    </EditForm>
  )
}
