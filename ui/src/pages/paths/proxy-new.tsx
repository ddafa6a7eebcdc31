// A new proxy.

import { useState } from 'react'
import { call, client, type Schemas } from '@/api/client'
import { useTitle } from '@/app/crumb'
import { useGo } from '@/app/link'
import { Answer, Tabs } from '@/components/answer'
import { EditForm, useEdit } from '@/components/form'
import { Section } from '@/components/section'
import { useText } from '@/text'
import { paths } from './entry'
import { ProxyFields, proxyForm, proxyInput, type ProxyForm } from './proxy-form'

export default function NewProxy() {
  const text = useText()
  const go = useGo()
  const words = text.paths.proxies
  useTitle(words.new)
  const [initial] = useState(() => ({ value: proxyForm(null), etag: null }))
  const edit = useEdit<ProxyForm>({
    key: 'proxy.new',
    initial,
    secrets: ['password'],
    save: (value) => call(client.POST('/proxies', { body: proxyInput(value) })),
    onSaved: (answer) => go(`/paths/proxies/${(answer.data as Schemas['Proxy']).id}`),
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
