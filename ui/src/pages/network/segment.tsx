// One segment.

import { call, client, type Schemas } from '@/api/client'
import { get, useGet } from '@/api/query'
import { useTitle } from '@/session/crumb'
import { useEdit } from '@/components/edit'
import { EditForm } from '@/components/form'
import { ObjectPage } from '@/components/object-page'
import { usePageId } from '@/components/page-id'
import { Loaded, Section } from '@/components/section'
import { useText } from '@/text'
import { network } from './entry'
import { SegmentFields, segmentForm, segmentInput } from './segment-form'

type Segment = Schemas['Segment']

export default function SegmentPage() {
  const text = useText()
  const id = usePageId()
  const words = text.network.segments
  const segment = useGet('/segments/{id}', { path: { id } })
  const shown = segment.data?.data
  useTitle(shown?.name)
  const where = (each: Segment) =>
    each.vlan_id === null ? (each.interface ?? '-') : `${each.interface ?? '-'}, ${words.vlan(each.vlan_id)}`
  return (
    <ObjectPage
      question={shown ? words.detailQuestion(shown.name) : words.question}
      answer={
        segment.error
          ? text.network.unknownAnswer
          : shown
            ? words.detailAnswer(shown.cidr ?? '-', where(shown))
            : text.common.loading
      }
      entry={network}
      deletion={
        shown
          ? {
              name: shown.name,
              title: words.deleteTitle(shown.name),
              consequence: words.deleteConsequence,
              subject: { type: 'segment', id },
              mayForce: true,
              remove: (force) =>
                call(
                  client.DELETE('/segments/{id}', {
                    params: { path: { id }, query: force ? { force: true } : {} },
                  }),
                ),
              back: '/network/segments',
              draft: `segment.${id}`,
            }
          : null
      }
    >
      <Section title={words.settings}>
        <Loaded query={segment} lines={5}>
          {(read) => <Form key={id} segment={read} etag={segment.data?.etag ?? null} />}
        </Loaded>
      </Section>
    </ObjectPage>
  )
}

function Form({ segment, etag }: { segment: Segment; etag: string | null }) {
  const id = segment.id
  const edit = useEdit({
    key: `segment.${id}`,
    version: { value: segmentForm(segment), etag },
    save: (value, tag) =>
      call(
        client.PUT('/segments/{id}', {
          params: { path: { id }, header: tag ? { 'If-Match': tag } : {} },
          body: segmentInput(value),
        }),
      ),
    read: async () => {
      const now = await get('/segments/{id}', { path: { id } })
      return { value: segmentForm(now.data), etag: now.etag }
    },
  })
  return (
    <EditForm edit={edit}>
      <SegmentFields edit={edit} />
    </EditForm>
  )
}
