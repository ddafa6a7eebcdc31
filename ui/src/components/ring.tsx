// A ring that empties while a time passes.

import { useText } from '@/text'
import { useNow } from './time'

interface Props {
  from: string | null | undefined
  until: string | null | undefined
}

const AROUND = 2 * Math.PI * 19

/** A time in two or three letters: `45s`, `90m`, `12h`. */
export function shortTime(seconds: number): string {
  if (seconds < 60) return `${Math.ceil(seconds)}s`
  if (seconds < 6000) return `${Math.ceil(seconds / 60)}m`
  return `${Math.round(seconds / 3600)}h`
}

export function Ring({ from, until }: Props) {
  const text = useText()
  const now = useNow()
  const end = until ? Date.parse(until) : NaN
  const start = from ? Date.parse(from) : NaN
  const left = Math.max(0, (end - now) / 1000)
  const total = (end - start) / 1000
  const share = total > 0 ? Math.min(1, left / total) : 0
  const known = Number.isFinite(left)
  const label = known ? shortTime(left) : '-'
  return (
    <svg
      className="ring"
      viewBox="0 0 44 44"
      role="img"
      aria-label={
        known ? text.common.minutesLeft(Math.ceil(left / 60), Math.round(total / 60)) : text.common.noData
      }
    >
      <circle className="bg" cx="22" cy="22" r="19" />
      {share > 0 ? (
        <circle
          className="fg"
          cx="22"
          cy="22"
          r="19"
          strokeDasharray={`${(share * AROUND).toFixed(1)} 120`}
          transform="rotate(-90 22 22)"
        />
      ) : null}
      <text x="22" y="26.5">
        {label}
      </text>
    </svg>
  )
}
