// The review of saved policies before they are applied: what changes in words, in fields, and in the dataplane.

import { useState } from 'react'
import { call, client } from '@/api/client'
import { useChange, useGet } from '@/api/query'
import { say, sayError } from '@/session/toasts'
import { Button, IconButton } from '@/components/button'
import { Icon } from '@/components/icons'
import { Segmented } from '@/components/segmented'
import { Failure, Skeleton } from '@/components/section'
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
  const [discarding, setDiscarding] = useState(false)
  const { status, items, dryRun, ready, error } = useReview()
  const generation = useGet('/render', {}, { every: 60_000 }).data?.data.generation
  const opened = items.filter((item) => item.opens.length > 0)
  const onlyDevice =
    opened.length === 1 && opened[0]?.devices?.length === 1 ? opened[0].devices[0] : undefined
  const name = onlyDevice ?? opened.map((item) => item.pending.name).join(', ')
  const confirmed = ready && (opened.length === 0 || typed.trim() === name)
  const waits = status?.pending_confirm_until != null
  const plan = dryRun.data?.data

  const done = (snapshot: string | null) => {
    say(text.policies.appliedSay(snapshot))
    onClose()
  }
  const safely = useSafeApply(undo)
  const plainly = useChange(() => call(client.POST('/routing/policies/apply')))
  const busy = safely.isPending || plainly.isPending

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
        </div>
        {ready && opened.length > 0 ? (
          <div className="confirm">
            <p>
              <b className="strong">{opened.map((item) => opensWords(item, text)).join(' ')}</b>
              <br />
              <span className="mid">
                {text.policies.typeName(
                  name,
                  onlyDevice !== undefined ? 'device' : opened.length === 1 ? 'policy' : 'policies',
                )}
              </span>
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
                onChange={(event) => setTyped(event.target.value)}
              />
            </label>
            <UndoItself undo={undo} onChange={setUndo} />
          </div>
        ) : (
          <UndoItself undo={undo} onChange={setUndo} />
        )}
      </div>
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
            disabled={!confirmed || waits || busy || plan?.valid === false}
            busy={plainly.isPending}
            onClick={() => plainly.mutate(undefined, { onSuccess: () => done(null), onError: sayError })}
          >
            {text.policies.apply}
          </Button>
          <Button
            kind="primary"
            size="small"
            needs="operator"
            disabled={!confirmed || waits || plainly.isPending || plan?.valid === false}
            busy={safely.isPending}
            onClick={() =>
              safely.mutate(undefined, { onSuccess: ({ data }) => done(data.snapshot), onError: sayError })
            }
          >
            {text.policies.applySnapshot}
          </Button>
        </div>
      </div>
      {discarding ? (
        <DiscardDialog
          onClose={() => setDiscarding(false)}
          onDone={() => {
            setDiscarding(false)
            onClose()
          }}
        />
      ) : null}
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
