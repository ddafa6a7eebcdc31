// Counters of the devices: a number, and a pip for each device or, for many, their share.

import { useGet } from '@/api/query'
import { useVerdict } from '@/components/verdict'
import { Link } from '@/session/link'
import { Glyph, type State } from '@/components/state'
import { useText } from '@/text'
import { formatNumber } from '@/text/format'
import { totalsOf } from '@/pages/dns/privacy/totals'

/** Devices that are drawn one by one. */
const MOST_PIPS = 12

export function Ledger() {
  const text = useText()
  const { last, word } = useVerdict()
  const counts = last?.counts
  const stale = last !== undefined && last.word !== word
  const monitor = useGet('/privacy/leak-monitor', {}, { every: 60_000 }).data?.data
  const total = counts
    ? counts.protected + counts.direct_by_exception + counts.failed_open + counts.no_policy
    : 0
  const shown: [label: string, count: number | undefined, state: State, decision: string][] = [
    [text.overview.through, counts?.through_policy, 'ok', 'through_policy'],
    [text.overview.blocked, counts?.blocked, 'blocked', 'block'],
    [text.overview.byException, counts?.direct_by_exception, 'direct', 'direct_by_exception'],
    // Without a policy that fails open, the place belongs to the devices without any.
    ...((counts?.failed_open ?? 0) > 0
      ? ([[text.overview.failedOpen, counts?.failed_open, 'direct', 'failed_open']] as typeof shown)
      : []),
    [text.overview.noPolicy, counts?.no_policy, 'direct', 'no_policy'],
  ]
  return (
    <ul
      className={`ledger ${shown.length > 4 ? 'ledger--6' : ''} ${stale ? 'stale' : ''}`}
      aria-label={text.overview.ledger(total)}
    >
      <li>
        <Link to="/dns/privacy">
          <span className="dim">{text.overview.leaked}</span>
          <b>{last ? formatNumber(last.leaked_packets) : '-'}</b>
          <span className="sm dim">
            {monitor ? text.overview.stopped(formatNumber(totalsOf(monitor).stopped)) : text.common.noData}
          </span>
        </Link>
      </li>
      {shown.map(([label, count, state, decision]) => (
        <li key={label}>
          <Link to="/devices" search={{ decision }}>
            <span className="dim">{label}</span>
            <b>{count === undefined ? '-' : formatNumber(count)}</b>
            <Pips count={count ?? 0} total={total} state={stale ? 'unknown' : state} />
          </Link>
        </li>
      ))}
    </ul>
  )
}

function Pips({ count, total, state }: { count: number; total: number; state: State }) {
  if (count > MOST_PIPS)
    return (
      <svg className="share" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
        <rect className="share__all" width="100" height="4" />
        <rect
          className={`share__part share__part--${state}`}
          width={(100 * count) / Math.max(1, total)}
          height="4"
        />
      </svg>
    )
  return (
    <span className="pips" aria-hidden="true">
      {Array.from({ length: count }, (_, index) => (
        <Glyph key={index} state={state} />
      ))}
    </span>
  )
}
