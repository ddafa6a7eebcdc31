// The chart above the log: two hours or more, of which the list covers a part.

import { useMemo, useState } from 'react'
import { useGet } from '@/api/query'
import { useNow } from '@/components/time'
import { Brush } from './brush'
import { isNarrowed, type Entry, type Filters } from './filters'
import { histogramOf, MINUTE, windowOf } from './histogram'

interface Props {
  filters: Filters
  entries: readonly Entry[]
  /** Time to which the list was read, in milliseconds. Null before the first answer. */
  readTo: number | null
  setRange: (from: string | undefined, to: string | undefined) => void
}

/** Lengths of the history that are asked for, in minutes; the daemon keeps a day. */
const HISTORIES = [180, 720, 1440]

export function LogChart({ filters, entries, readTo, setRange }: Props) {
  const { from, to } = filters
  const minute = Math.ceil(useNow() / MINUTE) * MINUTE
  // A range with an end stays where it is; its chart does not move on either.
  const [frozen, setFrozen] = useState({ to, at: minute })
  if (frozen.to !== to) setFrozen({ to, at: minute })
  const now = to === undefined ? minute : frozen.at
  const window = useMemo(() => windowOf(timeOf(from), timeOf(to), now), [from, to, now])
  const needed = (minute - window.from) / MINUTE
  const minutes = HISTORIES.find((each) => each >= needed) ?? 1440
  const history = useGet('/dns/status', { query: { history: true, minutes } }, { every: 10_000 }).data?.data
    .history
  const histogram = useMemo(() => histogramOf(history ?? [], entries, window), [history, entries, window])
  const covered =
    readTo === null ? null : { from: Math.max(readTo, timeOf(from) ?? 0), to: timeOf(to) ?? histogram.to }
  if (histogram.most === 0) return null
  return (
    <Brush
      histogram={histogram}
      covered={covered}
      narrowed={isNarrowed(filters)}
      open={to === undefined}
      onChange={setRange}
    />
  )
}

function timeOf(time: string | undefined): number | undefined {
  const value = time === undefined ? NaN : Date.parse(time)
  return Number.isNaN(value) ? undefined : value
}
