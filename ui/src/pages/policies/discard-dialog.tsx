// The discard of all saved changes of policies: what goes back, what cannot, and the discard itself.

import { useQuery } from '@tanstack/react-query'
import { call, client, type Schemas } from '@/api/client'
import { Button } from '@/components/button'
import { Dialog } from '@/components/dialog'
import { FieldDiffTable } from '@/components/field-diff'
import { Failure, Loaded } from '@/components/section'
import { useFormAction } from '@/components/action'
import { useText } from '@/text'

type Result = Schemas['DiscardResult']

const discard = (dry_run: boolean) =>
  call(client.POST('/routing/policies/discard', { params: { query: { dry_run } } }))

export function DiscardDialog({ onClose, onDone }: { onClose: () => void; onDone: () => void }) {
  const text = useText()
  const t = text.policies
  const preview = useQuery({
    queryKey: ['/routing/policies/discard'],
    queryFn: () => discard(true),
  })
  const change = useFormAction(
    () => discard(false),
    (data) => {
      onDone()
      return data.remaining.length > 0 ? t.discardedPart(data.remaining.length) : t.discarded
    },
  )
  const found = preview.data?.data
  return (
    <Dialog open wide onClose={onClose} title={t.discardTitle}>
      <Loaded query={preview}>{(result) => <Preview result={result} />}</Loaded>
      <Failure error={change.error} />
      <div className="btns">
        <Button kind="primary" needs="operator" disabled={!found || found.changes.length === 0} does={change}>
          {t.discard}
        </Button>
        <Button kind="ghost" onClick={onClose}>
          {text.common.cancel}
        </Button>
      </div>
    </Dialog>
  )
}

function Preview({ result: { changes, remaining } }: { result: Result }) {
  const text = useText()
  const t = text.policies
  const ops = { create: t.discardCreates, update: t.discardUpdates, delete: t.discardDeletes, unchanged: '' }
  return (
    <>
      <p>{changes.length > 0 ? t.discardMeans(changes.length) : t.discardNothing}</p>
      {changes.length > 0 ? (
        // The list scrolls, so it must be reachable by the keyboard.
        // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex
        <div className="planlist" tabIndex={0} role="group" aria-label={t.discardTitle}>
          <ul className="rows">
            {changes.map((change) => (
              <li key={`${change.type} ${change.id}`}>
                <span>
                  <span className="dim">{change.type.replaceAll('_', ' ')}</span>{' '}
                  <span className="med">{change.name}</span> {ops[change.op]}
                </span>
                {change.op === 'update' ? (
                  <FieldDiffTable
                    name={change.name}
                    diff={change.diff}
                    headings={[t.fieldColumns.after, t.fieldColumns.before]}
                  />
                ) : null}
              </li>
            ))}
          </ul>
        </div>
      ) : null}
      {remaining.length > 0 ? (
        <>
          <p className="med">{t.discardRemaining(remaining.length)}</p>
          <ul className="rows">
            {remaining.map((each) => (
              <li key={each.id}>
                <span>
                  <span className="med">{each.name}</span>{' '}
                  <span className="dim" lang="en">
                    {each.reason}
                  </span>
                </span>
              </li>
            ))}
          </ul>
        </>
      ) : null}
    </>
  )
}
