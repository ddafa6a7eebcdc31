// A pause of blocking: begin it for a while, see what is left of it, and end it.

import { call, client, type Schemas } from '@/api/client'
import { useChange } from '@/api/query'
import { say, sayError } from '@/session/toasts'
import { useText } from '@/text'
import { formatAge, formatTime } from '@/text/format'
import { Button } from './button'
import { Glyph } from './state'
import { useNow } from './time'

const KEY = 'dns.blocking_paused_until'
/** Minutes that are offered. */
const MINUTES = [5, 30, 60] as const

export function PauseBlocking({ blocking }: { blocking: Schemas['Blocking'] }) {
  const text = useText()
  const words = text.pause
  const now = useNow()
  const set = useChange((until: string | null) =>
    call(
      client.PUT('/settings/{key}', { params: { path: { key: KEY }, header: {} }, body: { value: until } }),
    ),
  )
  // Another program filters or nothing does: there is nothing to pause.
  if (!blocking.enabled) return <p className="sm dim">{words.off}</p>
  const left = blocking.paused_until ? (Date.parse(blocking.paused_until) - now) / 1000 : 0
  const pause = (minutes: number) => {
    const until = new Date(now + minutes * 60_000).toISOString()
    set.mutate(until, {
      onSuccess: ({ warnings }) => say(words.begun(formatTime(until)), warnings),
      onError: sayError,
    })
  }
  if (blocking.paused_until && left > 0)
    return (
      <div className="pause pause--on">
        <Glyph state="direct" />
        <span className="strong">{words.paused(formatTime(blocking.paused_until))}</span>
        <span aria-hidden="true">{words.left(formatAge(left, text))}</span>
        <Button
          size="small"
          needs="admin"
          busy={set.isPending}
          onClick={() =>
            set.mutate(null, { onSuccess: ({ warnings }) => say(words.ended, warnings), onError: sayError })
          }
        >
          {words.resume}
        </Button>
      </div>
    )
  return (
    <div className="pause" role="group" aria-label={words.title}>
      <span className="dim sm">{words.title}</span>
      {MINUTES.map((minutes) => (
        <Button
          key={minutes}
          size="small"
          needs="admin"
          busy={set.isPending}
          onClick={() => pause(minutes)}
          aria-label={words.pauseFor(minutes)}
        >
          {words.minutes(minutes)}
        </Button>
      ))}
    </div>
  )
}
