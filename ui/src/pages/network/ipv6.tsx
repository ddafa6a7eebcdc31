// IPv6 on the LAN: the prefix and its settings.

import { call, client } from '@/api/client'
import { get, useGet } from '@/api/query'
import { answerOf, Page } from '@/components/answer'
import { useEdit } from '@/components/edit'
import { EditForm, numberOf, textOf, wordsOf } from '@/components/form'
import { FormFields } from '@/components/form-fields'
import { LoadedSection } from '@/components/section'
import { Table } from '@/components/table'
import { useText } from '@/text'
import { Addresses } from './interfaces'
import { settingsForm, type Ipv6Form } from './ipv6-form'

export default function Ipv6() {
  const text = useText()
  const words = text.network.ipv6
  const settings = useGet('/settings')
  const form = settings.data ? settingsForm(settings.data.data) : null
  return (
    <Page question={words.question} answer={answerOf(settings, text, () => form && <Sentence form={form} />)}>
      <Now />
      <LoadedSection title={words.settings} hint={words.settingsHint} query={settings} lines={4}>
        {(read) => <Form value={settingsForm(read)} etag={settings.data?.etag ?? null} />}
      </LoadedSection>
    </Page>
  )
}

function Sentence({ form }: { form: Ipv6Form }) {
  const words = useText().network.ipv6
  if (!form.enabled) return <>{words.off}</>
  return (
    <>
      {words.on} {form.prefix ? words.fixed(form.prefix) : form.delegation ? words.delegated : words.noPrefix}
    </>
  )
}

/** The IPv6 addresses that interfaces of the LAN and uplinks have. */
function Now() {
  const text = useText()
  const words = text.network.ipv6
  const { columns, roles } = text.network.interfaces
  const interfaces = useGet('/interfaces', {}, { every: 15_000 })
  return (
    <LoadedSection title={words.addresses} hint={words.addressesHint} query={interfaces}>
      {(all) => (
        <Table
          rows={all.filter((each) => each.role === 'lan' || each.role === 'uplink')}
          id={(each) => each.name}
          columns={[
            { head: columns.name, bare: true, className: 'med', cell: (each) => each.name },
            { head: columns.role, cell: (each) => roles[each.role] },
            {
              head: columns.addresses,
              cell: (each) => (
                <Addresses addresses={each.addresses.filter((address) => address.includes(':'))} />
              ),
            },
          ]}
        />
      )}
    </LoadedSection>
  )
}

function Form({ value, etag }: { value: Ipv6Form; etag: string | null }) {
  const words = useText().network.ipv6
  const edit = useEdit({
    key: 'settings.ipv6',
    version: { value, etag },
    save: (form, tag) =>
      call(
        client.PUT('/settings', {
          params: { header: tag ? { 'If-Match': tag } : {} },
          body: {
            'network.ipv6.enabled': form.enabled,
            'network.ipv6.delegation': form.delegation,
            'network.ipv6.trust_delegation': form.trust_delegation,
            'network.ipv6.prefix': textOf(form.prefix),
            'network.ipv6.rdnss': wordsOf(form.rdnss),
            'network.ipv6.mtu': numberOf(form.mtu),
            'network.ipv6.lifetime_sec': numberOf(form.lifetime_sec),
          },
        }),
      ),
    read: async () => {
      const now = await get('/settings')
      return { value: settingsForm(now.data), etag: now.etag }
    },
  })
  const path = (field: string) => `network.ipv6.${field}`
  return (
    <EditForm edit={edit} needs="admin">
      <FormFields
        draft={edit.draft}
        texts={words.fields}
        error={edit.problems}
        fields={[
          { field: 'enabled', path: path('enabled'), kind: 'check' },
          { field: 'delegation', path: path('delegation'), kind: 'check' },
          { field: 'trust_delegation', path: path('trust_delegation'), kind: 'check' },
          { field: 'prefix', path: path('prefix') },
          { field: 'rdnss', path: path('rdnss') },
          { field: 'mtu', path: path('mtu'), kind: 'number', min: 1280, max: 65535 },
          { field: 'lifetime_sec', path: path('lifetime_sec'), kind: 'number', required: true, min: 1 },
        ]}
      />
    </EditForm>
  )
}
