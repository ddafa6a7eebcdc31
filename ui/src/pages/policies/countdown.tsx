// The time that an exception has left, as a ring and as a number.

import { useNow } from '@/components/time'
import type { Exception } from './exceptions-model'

const RADIUS = 19
const ROUND = 2 * Math.PI * RADIUS

/** Seconds until an exception ends. */
export function useLeft(exception: Pick<Exception, 'expires_at' | 'remaining_sec'>): number {
  const now = useNow()
  if (!exception.expires_at) return exception.remaining_sec ?? 0
  return Math.max(0, (Date.parse(exception.expires_at) - now) / 1000)
}

/** A ring that empties. The words beside it say the same. */
export function Countdown({ exception }: { exception: Exception }) {
  const left = useLeft(exception)
  const whole = exception.duration_min * 60
  const part = whole > 0 ? Math.min(1, left / whole) : 0
  const shown =
    left >= 3600
      ? `${Math.floor(left / 3600)}h`
      : left >= 60
        ? `${Math.floor(left / 60)}`
        : `${Math.floor(left)}s`
  return (
    <svg className="ring" viewBox="0 0 44 44" aria-hidden="true">
      <circle className="bg" cx="22" cy="22" r={RADIUS} />
      <circle
        className="fg"
        cx="22"
        cy="22"
        r={RADIUS}
        strokeDasharray={`${ROUND * part} ${ROUND}`}
        transform="rotate(-90 22 22)"
      />
      <text x="22" y="26">
        {shown}
      </text>
    </svg>
  )
}
