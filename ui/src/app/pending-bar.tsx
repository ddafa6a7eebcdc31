// The bar at the bottom of every page while stored policies differ from the applied ones.

import { lazy, Suspense, useCallback, useState } from 'react'
import { useGet } from '@/api/query'
import { Button } from '@/components/button'
import { Icon } from '@/components/icons'
import { useAge } from '@/components/time'
import { useText } from '@/text'

const Review = lazy(() => import('@/pages/policies/review'))
const ApplyNow = lazy(() => import('@/pages/policies/apply-now'))
const Discard = lazy(async () => ({
  default: (await import('@/pages/policies/discard-dialog')).DiscardDialog,
}))

/** Who saved last, and when. */
function Saved({ by, at }: { by: string; at: string }) {
  const text = useText()
  const age = useAge(at)
  return <>{text.shell.savedBy(by, age)}</>
}

export function PendingBar() {
  const text = useText()
  const [shown, setShown] = useState<'bar' | 'review' | 'apply' | 'discard'>('bar')
  const review = useCallback(() => setShown('review'), [])
  const close = useCallback(() => setShown('bar'), [])
  const status = useGet('/status', {}, { every: 3000 }).data?.data
  if (!status?.pending_changes) return null
  return (
    <aside className="dock" aria-label={text.shell.pending}>
      {shown === 'review' ? (
        <Suspense fallback={null}>
          <Review onClose={close} />
        </Suspense>
      ) : (
        <div className="dock__bar">
          <Icon name="clock" />
          <p>
            {status.pending_policies > 0
              ? text.shell.pendingCount(status.pending_policies)
              : text.shell.pendingSentence}{' '}
            <span>
              {text.shell.pendingRevisions(status.stored_revision, status.applied_revision)}{' '}
              {status.last_saved ? <Saved by={status.last_saved.by} at={status.last_saved.at} /> : null}
            </span>
          </p>
          <div className="btns">
            <Button size="small" onClick={review}>
              {text.shell.review}
            </Button>
            <Button
              kind="primary"
              size="small"
              needs="operator"
              busy={shown === 'apply'}
              onClick={() => setShown('apply')}
            >
              {text.policies.apply}
            </Button>
            <Button
              size="small"
              needs="operator"
              className="only-wide"
              disabled={shown === 'apply'}
              onClick={() => setShown('discard')}
            >
              {text.policies.discard}
            </Button>
          </div>
        </div>
      )}
      <Suspense fallback={null}>
        {shown === 'apply' ? <ApplyNow onReview={review} onDone={close} /> : null}
        {shown === 'discard' ? <Discard onClose={close} onDone={close} /> : null}
      </Suspense>
    </aside>
  )
}
