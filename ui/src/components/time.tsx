// Times and ages. One clock moves all ages on.

import { useSyncExternalStore } from 'react'
import { useText } from '@/text'
import { formatAge, formatTime } from '@/text/format'

let now = Date.now()
const listeners = new Set<() => void>()
let timer: number | undefined

function subscribe(listener: () => void) {
  listeners.add(listener)
  timer ??= window.setInterval(() => {
    now = Date.now()
    for (const each of listeners) each()
  }, 1000)
  return () => {
    listeners.delete(listener)
    if (listeners.size === 0) {
      window.clearInterval(timer)
      timer = undefined
    }
  }
}

/** The time in milliseconds, each second. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, () => now)
}

/** The age of a time in words: `4 s`. */
export function useAge(time: string | null | undefined): string {
  const text = useText()
  const present = useNow()
  if (!time) return text.common.never
  return formatAge(Math.max(0, (present - Date.parse(time)) / 1000), text)
}

/** An age that counts on: `4 s ago`. */
export function Age({ time }: { time: string | null | undefined }) {
  const text = useText()
  const age = useAge(time)
  if (!time) return <>{text.common.never}</>
  return (
    <time dateTime={time} title={formatTime(time, 'long')}>
      {text.common.ago(age)}
    </time>
  )
}

/** A time of day, with the date if it is another day. */
export function Clock({ time, seconds = false }: { time: string | null | undefined; seconds?: boolean }) {
  if (!time) return <>-</>
  return (
    <time dateTime={time} title={formatTime(time, 'long')}>
      {formatTime(time, seconds ? 'seconds' : 'short')}
    </time>
  )
}
