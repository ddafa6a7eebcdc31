// An active exception: how long it holds, and its end.

import { call, client } from '@/api/client'
import { Link } from '@/session/link'
import { useAction } from '@/components/action'
import { useText } from '@/text'
import { formatTime } from '@/text/format'
import { Button } from '@/components/button'
import { effectOf, extending, type Exception } from './exceptions'
import { Ring } from '@/components/ring'

export function ExceptionRow({ exception, device }: { exception: Exception; device?: string }) {
  const text = useText()
  const remove = (id: string) => call(client.DELETE('/exceptions/{id}', { params: { path: { id } } }))
  const end = useAction(
    () => remove(exception.id),
    () => text.exception.ended,
  )
  // The API does not change exceptions. The longer one begins before the shorter one ends, so there is no gap.
  const extend = useAction(
    async () => {
      const longer = await call(
        client.POST('/exceptions', {
          body: extending(exception, exception.remaining_sec ?? 0, 30),
        }),
      )
      await remove(exception.id)
      return longer
    },
    () => text.exception.prolonged,
  )
  const effect = text.overview.exceptions.effects[effectOf(exception)](exception.profile ?? '')
  return (
    <div className="exc">
      <Ring from={exception.starts_at} until={exception.expires_at} />
      <div className="two">
        <span>
          {device === undefined ? null : (
            <>
              <Link className="med" to={`/devices/${exception.device_id}`}>
                {device}
              </Link>{' '}
            </>
          )}
          {effect}
          {exception.expires_at ? `, ${text.exception.until(formatTime(exception.expires_at))}` : ''}
        </span>
        <small>
          {[exception.type, exception.created_by ? text.exception.by(exception.created_by) : null]
            .filter(Boolean)
            .join(', ')}
          {exception.reason ? `: “${exception.reason}”` : ''}
        </small>
        <span className="btns">
          <Button kind="ghost" size="small" needs="operator" does={end}>
            {text.exception.endNow}
          </Button>
          <Button kind="ghost" size="small" needs="operator" does={extend}>
            {text.exception.addMinutes}
          </Button>
        </span>
      </div>
    </div>
  )
}
