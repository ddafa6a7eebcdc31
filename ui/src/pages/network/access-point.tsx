// The access point: its state, its networks and its radio.

import { call, client, type Schemas } from '@/api/client'
import { get, useGet } from '@/api/query'
import { useEdit } from '@/components/edit'
import { Facts } from '@/components/facts'
import { EditForm } from '@/components/form'
import { FormFields } from '@/components/form-fields'
import { Loaded, Section } from '@/components/section'
import { StateWord, Tag } from '@/components/state'
import { Table } from '@/components/table'
import { useText } from '@/text'
import { accessPointForm, accessPointOf, isWaiting, type AccessPointForm } from './access-point-form'

export function AccessPoint({ lans }: { lans: readonly string[] }) {
  const { accessPoint: words, interfaces } = useText().network
  const settings = useGet('/settings')
  const status = useGet('/access-point/status', {}, { every: 5000 }).data?.data
  return (
    <Section title={words.title} hint={words.hint}>
      {status?.enabled ? <Status status={status} /> : null}
      <Loaded query={settings} lines={3}>
        {(tree) => (
          <>
            {isWaiting(tree) ? (
              <div className="banner banner--plain">
                <Tag kind="pending">{words.waiting}</Tag>
                <code>{interfaces.restart}</code>
              </div>
            ) : null}
            <Form lans={lans} value={accessPointForm(tree)} etag={settings.data?.etag ?? null} />
          </>
        )}
      </Loaded>
    </Section>
  )
}

function Status({ status }: { status: Schemas['AccessPointStatus'] }) {
  const words = useText().network.accessPoint
  const { needs, error, radio, stations } = status
  const isOn = radio?.state === 'ENABLED'
  return (
    <>
      <Facts
        facts={[
          [
            words.facts.state,
            <StateWord key="state" state={isOn ? 'ok' : 'down'}>
              {isOn ? words.on : words.off}
            </StateWord>,
          ],
          needs !== null && [words.facts.needs, <English key="needs" text={needs} />],
          error !== null && [words.facts.error, <English key="error" text={error} />],
          radio?.channel != null && [words.facts.channel, String(radio.channel)],
          ...(radio?.networks ?? []).map(
            (network) =>
              [network.ssid, words.stationsOn(network.stations ?? null, network.interface)] as const,
          ),
        ]}
      />
      {stations && stations.length > 0 ? (
        <Table
          columns={[
            { head: words.columns.mac, cell: (one) => <code>{one.mac}</code> },
            { head: words.columns.security, cell: (one) => one.security ?? '-' },
            {
              head: words.columns.signal,
              cell: (one) => (one.signal_dbm === null ? '-' : `${one.signal_dbm} dBm`),
            },
          ]}
          rows={stations}
          id={(one) => one.mac}
        />
      ) : null}
    </>
  )
}

const English = ({ text }: { text: string }) => <span lang="en">{text}</span>

interface FormProps {
  lans: readonly string[]
  value: AccessPointForm
  etag: string | null
}

const BANDS = [
  ['2.4ghz', '2.4 GHz'],
  ['5ghz', '5 GHz'],
] as const
const WIDTHS = ['20', '40', '80'].map((width) => [width, `${width} MHz`] as const)

function useAccessPoint(value: FormProps['value'], etag: string | null) {
  return useEdit({
    key: 'settings.access-point',
    version: { value, etag },
    save: (form, tag) =>
      call(
        client.PUT('/settings', {
          params: { header: tag ? { 'If-Match': tag } : {} },
          body: { 'network.ap': accessPointOf(form) },
        }),
      ),
    read: async () => {
      const now = await get('/settings')
      return { value: accessPointForm(now.data), etag: now.etag }
    },
  })
}

function Form({ lans, value, etag }: FormProps) {
  const words = useText().network.accessPoint
  const edit = useAccessPoint(value, etag)
  const { value: form } = edit.draft
  const set = form.interface !== ''
  const on = set && form.enabled
  const guests = on && form.guest_enabled
  const wide = on && form.band === '5ghz'
  const options = [['', words.none], ...lans.map((name) => [name, name] as const)] as const
  return (
    <EditForm edit={edit} needs="admin">
      <FormFields
        draft={edit.draft}
        texts={words.fields}
        error={edit.problems}
        fields={[
          { field: 'interface', path: 'network.ap.interface', kind: 'choice', options },
          set && { field: 'subnet', path: 'network.ap.subnet', required: true },
          set && { field: 'ip', path: 'network.ap.ip', required: true },
          set && { field: 'enabled', path: 'network.ap.enabled', kind: 'check', wide: true },
          on && { field: 'ssid', path: 'network.ap.ssid', required: true },
          on && {
            field: 'passphrase',
            path: 'network.ap.passphrase',
            kind: 'secret',
            stored: form.has_passphrase,
          },
          on && { field: 'security', path: 'network.ap.security', kind: 'choice', options: words.securities },
          on && { field: 'country', path: 'network.ap.country', required: true },
          on && { field: 'band', path: 'network.ap.band', kind: 'choice', options: BANDS },
          on && { field: 'channel', path: 'network.ap.channel' },
          wide && { field: 'width_mhz', path: 'network.ap.width_mhz', kind: 'choice', options: WIDTHS },
          on && { field: 'isolation', path: 'network.ap.isolation', kind: 'check' },
          on && { field: 'dhcp', path: 'network.ap.dhcp', kind: 'check' },
          on && { field: 'guest_enabled', path: 'network.ap.guest', kind: 'check', wide: true },
          guests && { field: 'guest_ssid', path: 'network.ap.guest.ssid', required: true },
          guests && {
            field: 'guest_passphrase',
            path: 'network.ap.guest.passphrase',
            kind: 'secret',
            stored: form.has_guest_passphrase,
          },
          guests && { field: 'guest_subnet', path: 'network.ap.guest.subnet', required: true },
          guests && { field: 'guest_ip', path: 'network.ap.guest.ip', required: true },
          guests && { field: 'guest_dhcp', path: 'network.ap.guest.dhcp', kind: 'check' },
        ]}
      />
    </EditForm>
  )
}
