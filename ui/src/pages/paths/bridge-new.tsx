// A new bridge.

import { useState } from 'react'
import { call, client, type Schemas } from '@/api/client'
import { useTitle } from '@/app/crumb'
import { useGo } from '@/app/link'
import { Answer, Tabs } from '@/components/answer'
import { EditForm, useEdit } from '@/components/form'
import { Section } from '@/components/section'
import { useText } from '@/text'
import { BridgeFields, bridgeForm, bridgeInput } from './bridge-form'
import { paths } from './entry'

export default function NewBridge() {
  const text = useText()
  const go = useGo()
  const words = text.paths.bridges
  useTitle(words.new)
  const [initial] = useState(() => ({ value: bridgeForm(null), etag: null }))
  const edit = useEdit({
    key: 'bridge.new',
    initial,
    save: (value) => call(client.POST('/bridges', { body: bridgeInput(value) })),
    onSaved: (answer) => go(`/paths/bridges/${(answer.data as Schemas['Bridge']).id}`),
  })
  return (
    <>
      <Answer question={words.newQuestion}>{words.newAnswer}</Answer>
      <Tabs entry={paths} />
      <Section title={words.new}>
        <EditForm edit={edit} action={text.common.create} isNew onCancel={() => go('/paths/bridges')}>
          <BridgeFields edit={edit} />
        </EditForm>
      </Section>
    </>
  )
}
