// The apply from the bar of pending changes. What would let a device out directly, or cannot be applied, goes to the review,
// where it is confirmed by typing.

import { useEffect, useRef, useState } from 'react'
import { useQueryClient } from '@tanstack/react-query'
import { say, sayError } from '@/session/toasts'
import { useText } from '@/text'
import { useReview } from './review-data'
import { useSafeApply } from './safe-apply'

interface Props {
  onReview: () => void
  onDone: () => void
}

export default function ApplyNow({ onReview, onDone }: Props) {
  const text = useText()
  const queries = useQueryClient()
  const [fresh, setFresh] = useState(false)
  const started = useRef(false)
  const { status, items, dryRun, ready, error } = useReview()
  const apply = useSafeApply(true)
  // What was read before the last change must not decide.
  useEffect(() => {
    void queries.invalidateQueries().then(() => setFresh(true))
  }, [queries])
  const opens = items.some((item) => item.opens.length > 0)
  const waits = status?.pending_confirm_until != null
  const asks = opens || waits || error !== null || dryRun.data?.data.valid !== true
  useEffect(() => {
    if (!fresh || started.current || (!ready && error === null)) return
    started.current = true
    if (asks) onReview()
    else
      apply.mutate(undefined, {
        onSuccess: ({ data }) => say(text.policies.appliedSay(data.snapshot)),
        onError: sayError,
        onSettled: onDone,
      })
  }, [fresh, ready, error, asks, apply, onReview, onDone, text])
  return null
}
