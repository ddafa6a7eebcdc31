// The page of one object: its question and answer, its form and facts, and its deletion.

import { useState, type ReactNode } from 'react'
import type { Answer as Answered } from '@/api/client'
import { useChange } from '@/api/query'
import { useGo } from '@/session/link'
import type { Role } from '@/session/roles'
import { say } from '@/session/toasts'
import { useText } from '@/text'
import { Page } from './answer'
import { Button } from './button'
import { Confirm } from './confirm'
import { dropDraft } from './draft'
import type { Referring } from './referring'

export interface Deletion {
  /** The name that must be typed. */
  name: string
  title: string
  /** What follows, in a sentence. */
  consequence: ReactNode
  /** Kind and id, to name what refers to the object. */
  subject?: { type: string; id: string }
  /** What happens to one of the objects that refer to it, if it is not what the gateway says. */
  fate?: (object: Referring) => ReactNode
  /** It can be deleted although others use it, if that is wanted expressly. */
  mayForce?: boolean
  action?: string
  needs?: Role
  remove: (force: boolean) => Promise<Answered<unknown>>
  /** The page that is shown afterwards. */
  back: string
  /** Key of the draft that goes with the object. */
  draft?: string
  /** More that is worth knowing before. */
  about?: ReactNode
}

interface Props {
  question: string
  answer: ReactNode
  actions?: ReactNode
  /** Absent while it is read, of a new object, and of one that cannot be deleted. */
  deletion?: Deletion | null
  children: ReactNode
}

export function ObjectPage({ question, answer, actions, deletion, children }: Props) {
  const text = useText()
  const [asking, setAsking] = useState(false)
  return (
    <Page
      question={question}
      answer={answer}
      actions={
        actions || deletion ? (
          <>
            {actions}
            {deletion ? (
              <Button needs={deletion.needs ?? 'operator'} onClick={() => setAsking(true)}>
                {text.common.delete}
              </Button>
            ) : null}
          </>
        ) : undefined
      }
    >
      {children}
      {deletion ? <Question {...deletion} open={asking} onClose={() => setAsking(false)} /> : null}
    </Page>
  )
}

function Question(deletion: Deletion & { open: boolean; onClose: () => void }) {
  const { name, open, onClose } = deletion
  const text = useText()
  const go = useGo()
  const change = useChange(async (force: boolean) => {
    const answer = await deletion.remove(force)
    // The page of what is gone is left before anything is read again.
    if (deletion.draft) dropDraft(deletion.draft)
    say(text.common.deleted(name), answer.warnings)
    go(deletion.back)
    return answer
  })
  return (
    <Confirm
      open={open}
      onClose={onClose}
      title={deletion.title}
      consequence={deletion.consequence}
      name={name}
      subject={deletion.subject}
      fate={deletion.fate}
      mayForce={deletion.mayForce}
      action={deletion.action ?? text.common.delete}
      busy={change.isPending}
      error={change.error}
      onConfirm={(force) => change.mutate(force)}
    >
      {deletion.about}
    </Confirm>
  )
}
