// The network of an access point: its interface, its subnet and the address of the gateway in it.

import { call, client } from '@/api/client'
import { get, useGet } from '@/api/query'
import { useEdit } from '@/components/edit'
import { EditForm } from '@/components/form'
import { FormFields } from '@/components/form-fields'
import { Loaded, Section } from '@/components/section'
import { Tag } from '@/components/state'
import { useText } from '@/text'
import { accessPointForm, accessPointOf, isWaiting, type AccessPointForm } from './access-point-form'

export function AccessPoint({ lans }: { lans: readonly string[] }) {
  const { accessPoint: words, interfaces } = useText().network
  const settings = useGet('/settings')
  return (
    <Section title={words.title} hint={words.hint}>
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

interface FormProps {
  lans: readonly string[]
  value: AccessPointForm
  etag: string | null
}

function Form({ lans, value, etag }: FormProps) {
  const words = useText().network.accessPoint
  const edit = useEdit({
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
  const set = edit.draft.value.interface !== ''
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
        ]}
      />
    </EditForm>
  )
}
