// A new segment.

import { NewObject } from '@/components/object-form'
import { useText } from '@/text'
import { allSegments, SegmentFields } from './segment-form'

export default function NewSegment() {
  const words = useText().network.segments
  return (
    <NewObject
      resource={allSegments}
      question={words.newQuestion}
      answer={words.newAnswer}
      title={words.new}
      back="/network/segments"
    >
      {(edit) => <SegmentFields edit={edit} />}
    </NewObject>
  )
}
