// The first run: from an empty gateway to a proven one in eight steps. Each may be skipped, and the state is kept.

import { useEffect, useState } from 'react'
import { SignInAgain } from '@/components/sign-in'
import { Toasts } from '@/components/toasts'
import { say, sayError } from '@/session/toasts'
import { Icon, Logo, Sprite } from '@/components/icons'
import { useText } from '@/text'
import { AdminStep } from './admin'
import { FailureStep } from './failure'
import { GroundStep } from './ground'
import { NamesStep } from './names'
import { PathStep } from './path'
import { ProveStep } from './prove'
import { SaveStep } from './save'
import { WiresStep } from './wires'
import {
  before,
  finished,
  forgetProgress,
  loadProgress,
  saveProgress,
  skip,
  STEPS,
  type Progress,
  type Step,
} from './progress'
import { restoreInterrupted } from './bench'
import type { StepProps } from './step'

const PAGES: Record<Step, (props: StepProps) => React.ReactNode> = {
  admin: AdminStep,
  ground: GroundStep,
  wires: WiresStep,
  names: NamesStep,
  path: PathStep,
  failure: FailureStep,
  prove: ProveStep,
  save: SaveStep,
}

export default function Wizard({ onClose }: { onClose: () => void }) {
  const text = useText()
  const t = text.wizard
  const [progress, setProgress] = useState<Progress>(loadProgress)
  useEffect(() => saveProgress(progress), [progress])
  // A page that was closed in the middle of the proof left a tunnel down.
  useEffect(() => {
    restoreInterrupted()
      .then((restored) => (restored ? say(t.prove.restored) : undefined))
      .catch((error: unknown) => sayError(error as Error))
  }, [t])
  const Page = PAGES[progress.step]
  const finish = (summary: string, more?: Partial<Progress>) => {
    if (progress.step === 'save') {
      forgetProgress()
      onClose()
      return
    }
    setProgress(finished(progress, summary, more))
  }
  return (
    <div className="wiz">
      <Sprite />
      <a className="skip" href="#main">
        {text.shell.skip}
      </a>
      <Side progress={progress} onOpen={(step) => setProgress({ ...progress, step })} onClose={onClose} />
      <Page
        key={progress.step}
        progress={progress}
        finish={finish}
        back={() => setProgress({ ...progress, step: before(progress.step) })}
        skip={() => setProgress(skip(progress))}
      />
      <SignInAgain />
      <Toasts />
    </div>
  )
}

interface SideProps {
  progress: Progress
  onOpen: (step: Progress['step']) => void
  onClose: () => void
}

/** The steps, and what is behind them. */
function Side({ progress, onOpen, onClose }: SideProps) {
  const text = useText()
  const t = text.wizard
  return (
    <header className="wiz__side">
      <p className="brand">
        <Logo />
        <span>{text.shell.product}</span>
      </p>
      <nav aria-label={t.steps}>
        <ol className="steps">
          {STEPS.map((step, index) => (
            <StepItem
              key={step}
              step={step}
              number={index + 1}
              progress={progress}
              onOpen={() => onOpen(step)}
            />
          ))}
        </ol>
      </nav>
      <div className="side__foot">
        <p>
          {t.offline}
          <br />
          {t.resume}
        </p>
        <p>
          <button type="button" className="link" onClick={onClose}>
            {t.leave}
          </button>
        </p>
      </div>
    </header>
  )
}

interface ItemProps {
  step: Step
  number: number
  progress: Progress
  onOpen: () => void
}

function StepItem({ step, number, progress, onOpen }: ItemProps) {
  const text = useText()
  const t = text.wizard
  const words = step === 'names' ? text.hosts.first : t[step]
  const done = progress.done[step]
  const current = progress.step === step
  const skipped = progress.skipped.includes(step)
  return (
    <li
      className={done !== undefined && !current ? 'is-done' : ''}
      aria-current={current ? 'step' : undefined}
    >
      <span className="b">{done !== undefined && !current ? <Icon name="check" /> : number}</span>
      <span>
        <button type="button" className="plainbtn" onClick={onOpen}>
          {words.title}
        </button>
        <small>{done ?? (skipped ? t.skipped : words.hint)}</small>
      </span>
    </li>
  )
}
