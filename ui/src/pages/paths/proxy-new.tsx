// A new proxy.

import { call, client, type Schemas } from '@/api/client'
import { useTitle } from '@/session/crumb'
import { useGo } from '@/session/link'
import { Answer, Tabs } from '@/components/answer'
import { useEdit } from '@/components/edit'
import { EditForm } from '@/components/form'
import { Section } from '@/components/section'
import { useText } from '@/text'
import { paths } from './entry'
import { ProxyFields, proxyForm, proxyInput, type ProxyForm } from './proxy-form'

export default function NewProxy() {
  const text = useText()
  const go = useGo()
  const words = text.paths.proxies
  useTitle(words.new)
  const edit = useEdit<ProxyForm, Schemas['Proxy']>({
    key: 'proxy.new',
    version: { value: proxyForm(null), etag: null },
    secrets: ['password'],
    save: (value) => call(client.POST('/proxies', { body: proxyInput(value) })),
    onSaved: ({ id }) => go(`/paths/proxies/${id}`),
  })
  return (
    <>
      <Answer question={words.newQuestion}>{words.newAnswer}</Answer>
      <Tabs entry={paths} />
      <Section title={words.new}>
        <EditForm edit={edit} action={text.common.create} isNew onCancel={() => go('/paths/proxies')}>
          <ProxyFields edit={edit} />
        </EditForm>
      </Section>
    </>
  )
}
