// One segment.

import { useState } from 'react'
import { call, client, type Schemas } from '@/api/client'
import { get, useChange, useGet } from '@/api/query'
import { useTitle } from '@/app/crumb'
import { useGo } from '@/app/link'
import { say } from '@/app/toasts'
import { Answer, Tabs } from '@/components/answer'
import { Button } from '@/components/button'
import { Confirm } from '@/components/confirm'
import { EditForm, useEdit } from '@/components/form'
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
  const [deleting, setDeleting] = useState(false)
  const shown = segment.data?.data
  useTitle(shown?.name)
  const where = (each: Segment) =>
    each.vlan_id === null ? (each.interface ?? '-') : `${each.interface ?? '-'}, ${words.vlan(each.vlan_id)}`
  return (
    <>
      <Answer
        question={shown ? words.detailQuestion(shown.name) : words.question}
        actions={
          shown ? (
            <Button needs="operator" onClick={() => setDeleting(true)}>
              {text.common.delete}
            </Button>
          ) : null
        }
      >
        {segment.error
          ? text.network.unknownAnswer
          : shown
            ? words.detailAnswer(shown.cidr ?? '-', where(shown))
            : text.common.loading}
      </Answer>
      <Tabs entry={network} />
      <Section title={words.settings}>
        <Loaded query={segment} lines={5}>
          {(read) => <Form key={id} segment={read} etag={segment.data?.etag ?? null} />}
        </Loaded>
      </Section>
      {shown ? <Deletion segment={shown} open={deleting} onClose={() => setDeleting(false)} /> : null}
    </>
  )
}

function Form({ segment, etag }: { segment: Segment; etag: string | null }) {
  const id = segment.id
  const [initial] = useState(() => ({ value: segmentForm(segment), etag }))
  const edit = useEdit({
    key: `segment.${id}`,
    initial,
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
    onSaved: () => undefined,
  })
  return (
    <EditForm edit={edit}>
      <SegmentFields edit={edit} />
    </EditForm>
  )
}

function Deletion({ segment, open, onClose }: { segment: Segment; open: boolean; onClose: () => void }) {
  const text = useText()
  const go = useGo()
  const words = text.network.segments
  const change = useChange(() =>
    call(client.DELETE('/segments/{id}', { params: { path: { id: segment.id }, query: { force: true } } })),
  )
  return (
    <Confirm
      open={open}
      onClose={onClose}
      title={words.deleteTitle(segment.name)}
      consequence={words.deleteConsequence}
      name={segment.name}
      subject={{ type: 'segment', id: segment.id }}
      action={text.common.delete}
      busy={change.isPending}
      error={change.error}
      onConfirm={() =>
        change.mutate(undefined, {
          onSuccess: () => {
            say(text.common.deleted(segment.name))
            go('/network/segments')
          },
        })
      }
    />
  )
}
