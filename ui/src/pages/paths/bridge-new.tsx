// A new bridge.

import { call, client } from '@/api/client'
import { useTitle } from '@/session/crumb'
import { useGo } from '@/session/link'
import { Answer, Tabs } from '@/components/answer'
import { useEdit } from '@/components/edit'
import { EditForm } from '@/components/form'
import { Section } from '@/components/section'
import { useText } from '@/text'
import { BridgeFields, bridgeForm, bridgeInput } from './bridge-form'
import { paths } from './entry'

export default function NewBridge() {
  const text = useText()
  const go = useGo()
  const words = text.paths.bridges
  useTitle(words.new)
  const edit = useEdit({
    key: 'bridge.new',
    version: { value: bridgeForm(null), etag: null },
    save: (value) => call(client.POST('/bridges', { body: bridgeInput(value) })),
    onSaved: ({ id }) => go(`/paths/bridges/${id}`),
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
