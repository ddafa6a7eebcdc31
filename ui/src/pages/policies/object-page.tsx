// The frame of a form of one object: the answer, the form with its buttons, and deletion.

import { useRef, useState, type ReactNode } from 'react'
import { useChange } from '@/api/query'
import type { Answer as Answered } from '@/api/client'
import { useGo } from '@/app/link'
import { say } from '@/app/toasts'
import { Answer } from '@/components/answer'
import { Button } from '@/components/button'
import { Confirm } from '@/components/confirm'
import { ErrorSummary } from '@/components/fields'
import { Failure } from '@/components/section'
import { useText } from '@/text'
import { useSaveKey } from './save-key'
import type { Editor } from './use-editor'

interface Props<T extends Record<string, unknown>> {
  question: string
  title: ReactNode
  editor: Editor<T>
  /** Null for a new one. */
  existing: { id: string; name: string } | null
  /** Where one comes from. */
  back: string
  backLabel: string
  deleting?: {
    type: string
    title: string
    means: string
    action: string
    remove: () => Promise<Answered<unknown>>
  }
  children: ReactNode
}

export function ObjectPage<T extends Record<string, unknown>>(props: Props<T>) {
  const { editor, existing, deleting } = props
  const text = useText()
  const go = useGo()
  const form = useRef<HTMLFormElement>(null)
  const [asking, setAsking] = useState(false)
  const remove = useChange(() => deleting?.remove() ?? Promise.reject(new Error()))
  useSaveKey(form)
  return (
    <>
      <Answer
        question={props.question}
        actions={
          existing && deleting ? (
            <Button needs="operator" onClick={() => setAsking(true)}>
              {text.common.delete}
            </Button>
          ) : undefined
        }
      >
        {props.title}
      </Answer>
      <form
        ref={form}
        className="form plainform"
        onSubmit={(event) => {
          event.preventDefault()
          editor.submit()
        }}
      >
        {editor.draft.dirty ? <p className="dim">{text.policies.draftKept}</p> : null}
        {editor.problem ? (
          <ErrorSummary error={editor.problem} />
        ) : editor.error ? (
          <Failure error={editor.error} />
        ) : null}
        {props.children}
        <div className="btns formend">
          <Button
            kind="primary"
            submit
            needs="operator"
            busy={editor.busy}
            disabled={existing !== null && !editor.draft.dirty}
          >
            {text.common.save}
          </Button>
          {editor.draft.dirty ? (
            <Button kind="ghost" onClick={editor.forget}>
              {text.policies.discardDraft}
            </Button>
          ) : null}
          <Button kind="ghost" onClick={() => go(props.back)}>
            {props.backLabel}
          </Button>
        </div>
      </form>
      {existing && deleting ? (
        <Confirm
          open={asking}
          onClose={() => setAsking(false)}
          title={deleting.title}
          consequence={deleting.means}
          name={existing.name}
          subject={{ type: deleting.type, id: existing.id }}
          action={deleting.action}
          busy={remove.isPending}
          error={remove.error}
          onConfirm={() =>
            remove.mutate(undefined, {
              onSuccess: ({ warnings }) => {
                say(text.common.deleted(existing.name), warnings)
                editor.draft.discard()
                go(props.back)
              },
            })
          }
        />
      ) : null}
      {editor.dialog}
    </>
  )
}
