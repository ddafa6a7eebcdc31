// A new segment.

import { call, client } from '@/api/client'
import { useTitle } from '@/session/crumb'
import { useGo } from '@/session/link'
import { Answer, Tabs } from '@/components/answer'
import { useEdit } from '@/components/edit'
import { EditForm } from '@/components/form'
import { Section } from '@/components/section'
import { useText } from '@/text'
import { network } from './entry'
import { SegmentFields, segmentForm, segmentInput } from './segment-form'

export default function NewSegment() {
  const text = useText()
  const go = useGo()
  const words = text.network.segments
  useTitle(words.new)
  const edit = useEdit({
    key: 'segment.new',
    version: { value: segmentForm(null), etag: null },
    save: (value) => call(client.POST('/segments', { body: segmentInput(value) })),
    onSaved: () => go('/network/segments'),
  })
  return (
    <>
      <Answer question={words.newQuestion}>{words.newAnswer}</Answer>
      <Tabs entry={network} />
      <Section title={words.new}>
        <EditForm edit={edit} action={text.common.create} isNew onCancel={() => go('/network/segments')}>
          <SegmentFields edit={edit} />
        </EditForm>
      </Section>
    </>
  )
}
