// A new bridge.

import { NewObject } from '@/components/object-form'
import { useText } from '@/text'
import { allBridges, BridgeFields } from './bridge-form'

export default function NewBridge() {
  const words = useText().paths.bridges
  return (
    <NewObject
      resource={allBridges}
      question={words.newQuestion}
      answer={words.newAnswer}
      title={words.new}
      back="/paths/bridges"
      next={({ id }) => `/paths/bridges/${id}`}
    >
      {(edit) => <BridgeFields edit={edit} />}
    </NewObject>
  )
}
