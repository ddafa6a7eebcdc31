// The query log: who asked for what, and what became of it.

import { useCallback, useEffect, useMemo, useState, useSyncExternalStore } from 'react'
import { get, useGet } from '@/api/query'
import { Link } from '@/app/link'
import { useSearchParams } from '@/app/search-params'
import { Answer, Tabs } from '@/components/answer'
import { Button, IconButton } from '@/components/button'
import { Failure, Skeleton } from '@/components/section'
import { useText } from '@/text'
import { formatTime } from '@/text/format'
import { dns } from '../entry'
import { useListNames } from '../names'
import { FilterBar } from './filter-bar'
import { forServer, inRange, loadedOnly, passes, readFilters, summarise, type Filters } from './filters'
import { histogramOf } from './histogram'
import { Brush } from './brush'
import { LogTable } from './log-table'
import { LogStore, MOST, type ReadPage } from './store'
import { saveEntries } from './save'

const readPage: ReadPage = async (query, signal) => (await get('/dns/log', { query }, signal)).data

/** Distance from the top of the page within which new rows do not move what is read, in pixels. */
const AT_TOP = 80

export default function QueryLog() {
  const text = useText()
  const [search, change] = useSearchParams()
  const filters = readFilters(search)
  const live = search.live !== 'off' && filters.to === undefined
  const server = forServer(filters)
  const key = JSON.stringify(server)
  // A range that ends in the past is read from its end; it stays where it is while the range is changed by the chart.
  const [before, setBefore] = useState(() => startOf(filters))
  const store = useMemo(() => new LogStore(JSON.parse(key) as typeof server, readPage, before), [key, before])
  const state = useSyncExternalStore(store.subscribe, store.snapshot)
  const atTop = useAtTop()
  const open = search.open ?? null
  const follows = live && atTop && open === null
  useEffect(() => store.follow(follows, live ? 2000 : 15_000), [store, follows, live])

  const matching = useMemo(() => {
    const wanted = JSON.parse(JSON.stringify(readFilters(search))) as Filters
    return state.entries.filter((entry) => passes(entry, wanted))
  }, [state.entries, search])
  const shown = matching.filter((entry) => inRange(entry, filters))
  const histogram = histogramOf(matching, undefined)
  const oldest = state.entries[state.entries.length - 1]
  // The start of the range is not reached yet.
  const short =
    filters.from !== undefined &&
    !state.end &&
    oldest !== undefined &&
    Date.parse(oldest.time) > Date.parse(filters.from) &&
    state.entries.length < MOST
  useEffect(() => {
    if (short && !state.loading && !state.error) void store.older()
  }, [store, short, state.loading, state.error])

  const setRange = (from: string | undefined, to: string | undefined) => {
    if (to === undefined) setBefore(undefined)
    change({ from, to, open: undefined })
  }
  const names = useListNames()
  // Filters that only this page applies would go through the whole log by themselves; there the button reads on.
  const byItself =
    loadedOnly(filters).length === 0 && filters.from === undefined && !state.end && state.error === null
  const readOn = useCallback(() => {
    if (byItself) void store.older()
  }, [store, byItself])
  return (
    <>
      <Answer
        question={text.dns.log.question}
        actions={
          <>
            <button
              type="button"
              className="live"
              aria-pressed={live}
              disabled={filters.to !== undefined}
              title={filters.to === undefined ? undefined : text.dns.log.rangeEnds}
              onClick={() => change({ live: live ? 'off' : undefined })}
            >
              <i aria-hidden="true" />
              {live ? text.dns.log.live : text.dns.log.frozen}
            </button>
            <IconButton
              icon="download"
              label={text.dns.log.download}
              disabled={shown.length === 0}
              onClick={() => saveEntries(shown)}
            />
          </>
        }
      >
        <LogSentence filters={filters} entries={shown} ready={state.readAt !== null} />
      </Answer>
      <Tabs entry={dns} />
      <section className="sec" aria-label={text.dns.log.label}>
        <FilterBar
          filters={filters}
          change={change}
          setRange={setRange}
          entries={state.entries}
          names={names}
        />
        <LogState />
        {histogram ? (
          <Brush
            histogram={histogram}
            from={filters.from}
            to={filters.to}
            live={live}
            onChange={(from, to) => setRange(from, to)}
          />
        ) : null}
        {loadedOnly(filters).length > 0 ? (
          <p className="dim sm">
            {text.dns.log.onlyLoaded(
              loadedOnly(filters).map((name) => text.dns.log.filters[name]),
              state.entries.length,
            )}
          </p>
        ) : null}
        {state.error ? (
          <Failure error={state.error} since={state.readAt ?? undefined} retry={() => void store.older()} />
        ) : null}
        {state.fresh.length > 0 && !follows ? (
          <div className="newrows">
            <Button
              size="small"
              icon="up"
              onClick={() => {
                store.take()
                window.scrollTo({ top: 0 })
              }}
            >
              {text.dns.log.newRows(state.fresh.length, state.freshMore)}
            </Button>
          </div>
        ) : null}
        {state.readAt === null && !state.error ? <Skeleton lines={8} /> : null}
        {shown.length > 0 ? (
          <div className={state.error ? 'stale' : undefined}>
            <LogTable
              entries={shown}
              names={names}
              open={open}
              onOpen={(id) => change({ open: id ?? undefined })}
              filterBy={change}
              dropped={state.dropped}
              onEnd={readOn}
            />
          </div>
        ) : state.readAt !== null ? (
          <div className="quiet">
            <p>{Object.keys(filters).length > 0 ? text.dns.log.noMatch : text.dns.log.empty}</p>
            <p className="dim sm">
              <code>gateway-ctl dns</code>
            </p>
          </div>
        ) : null}
        {state.readAt !== null ? (
          <div className="pager">
            <Button
              size="small"
              disabled={state.end || state.loading}
              busy={state.loading && state.readAt === null}
              onClick={() => void store.older()}
            >
              {text.dns.log.older}
            </Button>
            <span>
              {text.dns.log.searched(
                oldest ? formatTime(oldest.time, 'seconds') : null,
                state.entries.length,
                shown.length,
                state.end,
              )}{' '}
              {state.entries.length >= MOST ? text.dns.log.most(MOST) : null}
            </span>
          </div>
        ) : null}
      </section>
    </>
  )
}

/** Where to begin to read: a while after the end of the range, so that the chart shows what surrounds it. */
function startOf(filters: Filters): string | undefined {
  if (filters.to === undefined) return undefined
  const end = Date.parse(filters.to)
  if (Number.isNaN(end)) return undefined
  const start = filters.from === undefined ? end - 600_000 : Date.parse(filters.from)
  const around = Math.max(60_000, end - start)
  return new Date(Math.min(Date.now(), end + around)).toISOString()
}

function LogSentence({
  filters,
  entries,
  ready,
}: {
  filters: Filters
  entries: Parameters<typeof summarise>[0]
  ready: boolean
}) {
  const text = useText()
  const { log } = text.dns
  if (!ready) return <>{text.common.loading}</>
  const last = entries[entries.length - 1]
  if (!last) return <>{Object.keys(filters).length > 0 ? log.noMatch : log.empty}</>
  const sum = summarise(entries)
  const kept = { ...filters }
  return (
    <>
      {log.made(
        formatTime(filters.from ?? last.time),
        filters.to ? formatTime(filters.to, 'seconds') : null,
        sum.clients,
        sum.queries,
      )}{' '}
      {sum.blocked === 0 ? (
        log.noneBlocked
      ) : (
        <>
          <Link to="/dns" search={{ ...kept, status: 'blocked' }}>
            {log.blockedCount(sum.blocked)}
          </Link>
          {': '}
          {sum.by.map(([reason, count], index) => (
            <span key={reason}>
              {index > 0 ? ', ' : ''}
              <Link to="/dns" search={{ ...kept, status: 'blocked', reason }}>
                {log.by(reason, count)}
              </Link>
            </span>
          ))}
          .
        </>
      )}
    </>
  )
}

/** Records that were lost, or are not written: the log is not complete then. */
function LogState() {
  const text = useText()
  const state = useGet('/dns/status').data?.data.log
  if (!state || (state.lost === 0 && state.error === null)) return null
  return (
    <div className="banner banner--plain">
      <p>
        {state.lost > 0 ? text.dns.log.lost(state.lost) : null} {state.error}
      </p>
    </div>
  )
}

function useAtTop(): boolean {
  return useSyncExternalStore(subscribeScroll, () => window.scrollY < AT_TOP)
}

function subscribeScroll(listener: () => void) {
  window.addEventListener('scroll', listener, { passive: true })
  return () => window.removeEventListener('scroll', listener)
}
