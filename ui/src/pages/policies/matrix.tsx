// What each policy does in each state of the tunnels.

import { Answer, Tabs } from '@/components/answer'
import { useText } from '@/text'
import { DropAnswer } from './answer'
import { policies as entry } from './entry'
import { FailMatrix } from './fail-matrix'
import { LeakMatrix } from './leak-matrix'

export default function Matrix() {
  const text = useText()
  return (
    <>
      <Answer question={text.policies.question}>
        <DropAnswer />
      </Answer>
      <Tabs entry={entry} />
      <LeakMatrix />
      <FailMatrix />
    </>
  )
}
