// What each policy does in each state of the tunnels.

import { Page } from '@/components/answer'
import { useText } from '@/text'
import { DropAnswer } from './answer'
import { FailMatrix } from './fail-matrix'
import { LeakMatrix } from './leak-matrix'

export default function Matrix() {
  const text = useText()
  return (
    <Page question={text.policies.question} answer={<DropAnswer />}>
      <LeakMatrix />
      <FailMatrix />
    </Page>
  )
}
