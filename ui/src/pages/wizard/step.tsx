// One step of the setup: its head, its body, and the bar with back, skip and continue.

import { useEffect, useId, useRef, type ReactNode } from 'react'
import { Button } from '@/components/button'
import { useText } from '@/text'
import { STEPS, type Progress, type Step } from './progress'

export interface StepProps {
  progress: Progress
  /** Ends the step with what it says of itself. */
  finish: (summary: string, more?: Partial<Progress>) => void
  back: () => void
  skip: () => void
}

interface PageProps extends Pick<StepProps, 'progress' | 'back' | 'skip'> {
  step: Step
  title: string
  lead: ReactNode
  children: ReactNode
  /** Label of the button that goes on. */
  action: string
  onAction: () => void
  busy?: boolean
  disabled?: boolean
  /** A part with a form of its own. */
  inner?: ReactNode
  /** Other buttons of the bar. */
  extra?: ReactNode
  last?: boolean
}

/** Sends a form by Ctrl+Enter. */
function useSendKey() {
  const form = useRef<HTMLFormElement>(null)
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
        event.preventDefault()
        form.current?.requestSubmit()
      }
    }
    document.addEventListener('keydown', press)
    return () => document.removeEventListener('keydown', press)
  }, [])
  return form
}

const NEXT = { kind: 'primary', size: 'large', className: 'nowrap', 'data-next': true, submit: true } as const

export function StepPage(props: PageProps) {
  const { step, title, lead, children, action, onAction, busy, disabled, inner, extra, last, back, skip } =
    props
  const text = useText()
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => heading.current?.focus(), [step])
  const id = useId()
  const form = useSendKey()
  const index = STEPS.indexOf(step)
  return (
    <div className="main wiz__main">
      <main className="wiz__body" id="main">
        <div className="answer">
          <span className="answer__q">{text.wizard.stepOf(index + 1, STEPS.length)}</span>
          <h1 ref={heading} tabIndex={-1}>
            {title}
          </h1>
          <p className="lead">{lead}</p>
        </div>
        {inner}
        <form
          id={id}
          ref={form}
          className="wiz__form"
          onSubmit={(event) => {
            event.preventDefault()
            if (!busy && !disabled) onAction()
          }}
        >
          {children}
        </form>
      </main>
      <div className="wiz__foot">
        {index > 0 ? (
          <Button kind="ghost" onClick={back}>
            {text.wizard.back}
          </Button>
        ) : null}
        {extra}
        {last ? null : (
          <Button kind="ghost" onClick={skip}>
            {text.wizard.skip}
          </Button>
        )}
        <span className="dim sm only-wide">{text.wizard.keys}</span>
        <Button {...NEXT} form={id} busy={busy} disabled={disabled}>
          {action}
        </Button>
      </div>
    </div>
  )
}
