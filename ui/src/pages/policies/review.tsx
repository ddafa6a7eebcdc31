// The review of saved policies before they are applied: what changes in words, in fields, and in the dataplane.

import { useState, type ReactNode } from 'react'
import { call, client } from '@/api/client'
import { useGet } from '@/api/query'
import { say, sayError } from '@/session/toasts'
import { Button, IconButton } from '@/components/button'
import { Icon } from '@/components/icons'
import { Segmented } from '@/components/segmented'
import { Failure, Skeleton } from '@/components/section'
import { useAction } from '@/components/action'
import { useText, type Text } from '@/text'
import { DiscardDialog } from './discard-dialog'
import { useReview, type ReviewItem } from './review-data'
import { Dataplane } from './review-dataplane'
import { EffectList } from './review-effect'
import { FieldTable } from './review-fields'
import { useSafeApply } from './safe-apply'

type Shown = 'effect' | 'policies' | 'dataplane'

export default function Review({ onClose }: { onClose: () => void }) {
  const text = useText()
  const [shown, setShown] = useState<Shown>('effect')
  const [undo, setUndo] = useState(true)
  const [typed, setTyped] = useState('')
  const review = useReview()
  const { items, ready } = review
  const generation = useGet('/render', {}, { every: 60_000 }).data?.data.generation
  const opened = items.filter((item) => item.opens.length > 0)
  const confirmed = ready && (opened.length === 0 || typed.trim() === nameToType(opened))
  const undoItself = <UndoItself undo={undo} onChange={setUndo} />
  return (
    <>
      <div className="dock__panel review">
        <div className="sec__h">
          <h2>{text.policies.reviewTitle(items.length)}</h2>
          <Segmented
            label={text.policies.reviewViews}
            value={shown}
            options={[
              ['effect', text.policies.reviewTabs.effect],
              ['policies', text.policies.reviewTabs.policies],
              ['dataplane', text.policies.reviewTabs.dataplane],
            ]}
            onChange={setShown}
          />
          <span className="r">
            <span className="only-wide">
              {generation === undefined ? text.policies.compared : text.policies.comparedWith(generation)}
            </span>
            <IconButton small icon="x" label={text.policies.closeReview} onClick={onClose} />
          </span>
        </div>
        <div className="review__body">
          <Changes shown={shown} review={review} />
        </div>
        {ready && opened.length > 0 ? (
          <ConfirmOpening opened={opened} typed={typed} onType={setTyped}>
            {undoItself}
          </ConfirmOpening>
        ) : (
          undoItself
        )}
      </div>
      <ApplyBar review={review} confirmed={confirmed} undo={undo} onClose={onClose} />
    </>
  )
}

type Reviewed = ReturnType<typeof useReview>

/** What the apply changes, in one of three views, and what the gateway does not accept. */
function Changes({ shown, review }: { shown: Shown; review: Reviewed }) {
  const text = useText()
  const { items, dryRun, ready, error } = review
  const plan = dryRun.data?.data
  return (
    <>
      {error && !ready ? <Failure error={error} /> : null}
      {!ready ? (
        error ? null : (
          <Skeleton lines={3} />
        )
      ) : shown === 'effect' ? (
        <EffectList items={items} />
      ) : shown === 'policies' ? (
        <FieldTable items={items} />
      ) : (
        <Dataplane plan={plan?.plan ?? null} />
      )}
      {plan && !plan.valid ? (
        <div className="err" role="alert">
          <p className="strong">{text.policies.invalidPlan}</p>
          <ul>
            {plan.errors.map((problem) => (
              <li key={`${problem.path} ${problem.message}`}>
                <span lang="en">{problem.message}</span>
              </li>
            ))}
          </ul>
        </div>
      ) : null}
    </>
  )
}

/** The device, if the apply lets out one only. */
function onlyDeviceOf(opened: ReviewItem[]): string | undefined {
  const [only, ...more] = opened
  return more.length === 0 && only?.devices?.length === 1 ? only.devices[0] : undefined
}

function nameToType(opened: ReviewItem[]): string {
  return onlyDeviceOf(opened) ?? opened.map((item) => item.pending.name).join(', ')
}

interface ConfirmProps {
  opened: ReviewItem[]
  typed: string
  onType: (typed: string) => void
  children: ReactNode
}

/** Whom the apply lets out in the clear, and the name that must be typed. */
function ConfirmOpening({ opened, typed, onType, children }: ConfirmProps) {
  const text = useText()
  const name = nameToType(opened)
  const kind = onlyDeviceOf(opened) !== undefined ? 'device' : opened.length === 1 ? 'policy' : 'policies'
  return (
    <div className="confirm">
      <p>
        <b className="strong">{opened.map((item) => opensWords(item, text)).join(' ')}</b>
        <br />
        <span className="mid">{text.policies.typeName(name, kind)}</span>
      </p>
      <label>
        <span className="sr">{text.policies.typeNameLabel(name)}</span>
        <input
          className="field"
          size={14}
          placeholder={name}
          value={typed}
          autoComplete="off"
          spellCheck={false}
          onChange={(event) => onType(event.target.value)}
        />
      </label>
      {children}
    </div>
  )
}

interface ApplyProps {
  review: Reviewed
  confirmed: boolean
  undo: boolean
  onClose: () => void
}

function ApplyBar({ review, confirmed, undo, onClose }: ApplyProps) {
  const text = useText()
  const [discarding, setDiscarding] = useState(false)
  const { status, dryRun, ready } = review
  const done = (snapshot: string | null) => {
    say(text.policies.appliedSay(snapshot))
    onClose()
  }
  const safely = useSafeApply(undo)
  const plainly = useAction(
    () => call(client.POST('/routing/policies/apply')),
    () => done(null),
  )
  const busy = safely.isPending || plainly.busy
  const waits = status?.pending_confirm_until != null
  const blocked = !confirmed || waits || dryRun.data?.data.valid === false
  return (
    <>
      <div className="dock__bar review__bar">
        <Icon name="clock" />
        <p>
          {waits ? text.policies.waitsConfirm : text.shell.pendingSentence}{' '}
          {status ? (
            <span>{text.shell.pendingRevisions(status.stored_revision, status.applied_revision)}</span>
          ) : null}
        </p>
        <div className="btns">
          <Button size="small" needs="operator" disabled={!ready || busy} onClick={() => setDiscarding(true)}>
            {text.policies.discard}
          </Button>
          <Button
            size="small"
            needs="operator"
            className="only-wide"
            disabled={blocked || busy}
            does={plainly}
          >
            {text.policies.apply}
          </Button>
          <Button
            kind="primary"
            size="small"
            needs="operator"
            disabled={blocked || plainly.busy}
            busy={safely.isPending}
            onClick={() =>
              safely.mutate(undefined, { onSuccess: ({ data }) => done(data.snapshot), onError: sayError })
            }
          >
            {text.policies.applySnapshot}
          </Button>
        </div>
      </div>
      {discarding ? <DiscardDialog onClose={() => setDiscarding(false)} onDone={onClose} /> : null}
    </>
  )
}

/** Whom an apply lets out in the clear, and when. */
function opensWords({ pending, opens, devices }: ReviewItem, text: Text): string {
  const names = devices?.length ? devices.join(', ') : pending.name
  // Without the policy another one decides, which is not known here.
  if (pending.kind === 'off' || pending.kind === 'removed') return text.policies.mayOpenDirect(names)
  const now = opens.some((effect) => effect.when === text.policies.now)
  return text.policies.opensDirect(
    names,
    now ? text.policies.rightNow : text.policies.whenDown(opens.map((effect) => effect.when).join(', ')),
  )
}

function UndoItself({ undo, onChange }: { undo: boolean; onChange: (undo: boolean) => void }) {
  const text = useText()
  return (
    <label className="check">
      <input type="checkbox" checked={undo} onChange={(event) => onChange(event.target.checked)} />
      {text.policies.undoItself}
    </label>
  )
}
