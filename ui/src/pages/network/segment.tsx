// One segment.

import type { Schemas } from '@/api/client'
import { answerOf } from '@/components/answer'
import { useTitle } from '@/session/crumb'
import { ObjectForm } from '@/components/object-form'
import { ObjectPage } from '@/components/object-page'
import { usePageId } from '@/components/page-id'
import { deletionOf, useObject } from '@/components/resource'
import { LoadedSection } from '@/components/section'
import { useText } from '@/text'
import { allSegments, SegmentFields } from './segment-form'

type Segment = Schemas['Segment']

export default function SegmentPage() {
  const text = useText()
  const id = usePageId()
  const words = text.network.segments
  const segment = useObject(allSegments, id)
  const shown = segment.data?.data
  useTitle(shown?.name)
  const where = (each: Segment) =>
    each.vlan_id === null ? (each.interface ?? '-') : `${each.interface ?? '-'}, ${words.vlan(each.vlan_id)}`
  return (
    <ObjectPage
      question={shown ? words.detailQuestion(shown.name) : words.question}
      answer={answerOf(segment, text, (read) => words.detailAnswer(read.cidr ?? '-', where(read)))}
      deletion={deletionOf(allSegments, shown, {
        title: words.deleteTitle,
        consequence: words.deleteConsequence,
        mayForce: true,
        back: '/network/segments',
      })}
    >
      <LoadedSection title={words.settings} query={segment} lines={5}>
        {(read) => (
          <ObjectForm
            key={id}
            resource={allSegments}
            stored={{ data: read, etag: segment.data?.etag ?? null }}
          >
            {(edit) => <SegmentFields edit={edit} />}
          </ObjectForm>
        )}
      </LoadedSection>
    </ObjectPage>
  )
}
