// The bar at the bottom of every page while stored policies differ from the applied ones.

import { lazy, Suspense, useState } from 'react'
import { useGet } from '@/api/query'
import { Button } from '@/components/button'
import { Icon } from '@/components/icons'
import { useAge } from '@/components/time'
import { useText } from '@/text'

const Review = lazy(() => import('@/pages/policies/review'))

/** Who saved last, and when. */
function Saved({ by, at }: { by: string; at: string }) {
  const text = useText()
  const age = useAge(at)
  return <>{text.shell.savedBy(by, age)}</>
}

export function PendingBar() {
  const text = useText()
  const [open, setOpen] = useState(false)
  const status = useGet('/status', {}, { every: 3000 }).data?.data
  if (!status?.pending_changes) return null
  return (
    <aside className="dock" aria-label={text.shell.pending}>
      {open ? (
        <Suspense fallback={null}>
          <Review onClose={() => setOpen(false)} />
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
            <Button kind="primary" size="small" onClick={() => setOpen(true)}>
              {text.shell.review}
            </Button>
          </div>
        </div>
      )}
    </aside>
  )
}
