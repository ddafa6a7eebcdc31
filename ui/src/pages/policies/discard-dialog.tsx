import { useState } from 'react'
import { useQueryClient } from '@tanstack/react-query'
import { call, client } from '@/api/client'
import { Button } from '@/components/button'
import { Dialog } from '@/components/dialog'
import { Failure } from '@/components/section'
import { useText } from '@/text'
import { restoring } from './discard'
import type { ReviewItem } from './review-data'
import { put } from './use-order'

interface Props {
  items: ReviewItem[]
  /** The audit log says which fields were edited. */
  known: boolean
  onClose: () => void
  onDone: () => void
}

/** Sets all saved policies back, or says for which ones that cannot be done. */
export function DiscardDialog({ items, known, onClose, onDone }: Props) {
  const text = useText()
  const queries = useQueryClient()
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<Error | null>(null)
  const ways = items.map(({ pending, edit }) => ({
    pending,
    way: pending.kind === 'new' || known ? restoring(pending, edit) : null,
  }))
  const names = (list: typeof ways) => list.map(({ pending }) => pending.name).join(', ')
  const lost = ways.filter(({ way }) => way === null)
  const deleted = ways.filter(({ way }) => way === 'delete')
  const restored = ways.filter(({ way }) => way !== null && way !== 'delete')
  const possible = items.length > 0 && lost.length === 0
  const discard = async () => {
    setBusy(true)
    setError(null)
    try {
      for (const { pending, way } of ways) {
        if (!pending.stored || way === null) continue
        if (way === 'delete')
          await call(
            client.DELETE('/routing/policies/{id}', {
              params: {
                path: { id: pending.id },
                header: { 'If-Match': `"${pending.stored.revision}"` },
              },
            }),
          )
        else await put(pending.stored, way as Partial<Parameters<typeof put>[1]>)
      }
      onDone()
    } catch (failed) {
      setError(failed as Error)
      await queries.invalidateQueries()
    }
    setBusy(false)
  }
  return (
    <Dialog open onClose={onClose} title={text.policies.discardTitle}>
      {possible ? (
        <p>{text.policies.discardMeans(names(deleted), names(restored))}</p>
      ) : (
        <p>{items.length === 0 ? text.policies.fedChange : text.policies.cannotDiscard(names(lost))}</p>
      )}
      {error ? <Failure error={error} /> : null}
      <div className="btns">
        {possible ? (
          <Button kind="primary" needs="operator" busy={busy} onClick={() => void discard()}>
            {text.policies.discard}
          </Button>
        ) : null}
        <Button kind={possible ? 'ghost' : 'plain'} onClick={onClose}>
          {text.common.cancel}
        </Button>
      </div>
    </Dialog>
  )
}
