// The query log: who asked for what, and what became of it.

import { useCallback, useEffect, useMemo, useSyncExternalStore } from 'react'
import { get, useGet } from '@/api/query'
import { Link } from '@/session/link'
import { useSearchParams, type Search } from '@/session/search-params'
import { Page } from '@/components/answer'
import { Button, IconButton } from '@/components/button'
import { LiveButton } from '@/components/live-button'
import { Empty, Failure, Skeleton } from '@/components/section'
import { useText } from '@/text'
import { formatTime } from '@/text/format'
import { LogChart } from './chart'
import { FilterBar } from './filter-bar'
import { readFilters, summarise, toQuery, type Filters, type LogQuery } from './filters'
import { LogTable } from './log-table'
import { LogStore, MOST, PAGE, type LogState, type ReadPage } from './store'
import { saveEntries } from './save'

const readPage: ReadPage = async (query, signal) => {
  const { data, headers } = await get('/dns/log', { query }, signal)
  const searchedTo = headers.get('X-Searched-Back-To')
  const before = headers.get('X-Next-Before')
  const at = Date.parse(headers.get('Date') ?? '')
  return {
    entries: data,
    more: searchedTo !== null && before !== null ? { searchedTo, before } : null,
    at: Number.isNaN(at) ? Date.now() : at,
  }
}

/** Distance from the top of the page within which new rows do not move what is read, in pixels. */
const AT_TOP = 80
/** Entries of a range with a start that are read by themselves; older ones when they are scrolled to. */
const AT_ONCE = 4 * PAGE

export default function QueryLog() {
  const { log } = useText().dns
  const [search, change] = useSearchParams()
  const filters = readFilters(search)
  const live = search.live !== 'off' && filters.to === undefined
  const key = JSON.stringify(toQuery(filters))
  const store = useMemo(() => new LogStore(JSON.parse(key) as LogQuery, readPage), [key])
  const state = useSyncExternalStore(store.subscribe, store.snapshot)
  const { entries } = state
  const open = search.open ?? null
  const follows = useAtTop() && live && open === null
  useEffect(() => store.follow(follows, live ? 2000 : 15_000), [store, follows, live])

  const more = !state.end && !state.loading && state.error === null && state.searchedTo === null
  const short = more && filters.from !== undefined && entries.length < AT_ONCE
  useEffect(() => {
    if (short) void store.older()
  }, [store, short])
  // A search that ended early goes on by the button only: it may read the whole log for nothing.
  const readOn = useCallback(() => {
    if (more) void store.older()
  }, [store, more])

  const setRange = (from: string | undefined, to: string | undefined) => change({ from, to, open: undefined })
  return (
    <Page
      question={log.question}
      actions={
        <>
          <LiveButton live={live} why={filters.to === undefined ? undefined : log.rangeEnds} />
          <IconButton
            icon="download"
            label={log.download}
            disabled={entries.length === 0}
            onClick={() => saveEntries(entries)}
          />
        </>
      }
      answer={<LogSentence filters={filters} state={state} />}
    >
      <section className="sec" aria-label={log.label}>
        <FilterBar filters={filters} change={change} setRange={setRange} entries={entries} />
        <LostRecords />
        <LogChart filters={filters} entries={entries} readTo={readTo(state, filters)} setRange={setRange} />
        {state.error ? (
          <Failure error={state.error} since={state.readAt ?? undefined} retry={() => store.retry()} />
        ) : null}
        {state.fresh.length > 0 && !follows ? <NewRows state={state} onTake={() => store.take()} /> : null}
        <Entries filters={filters} state={state} open={open} change={change} onEnd={readOn} />
        {state.readAt !== null && (entries.length > 0 || Object.keys(filters).length > 0) ? (
          <Pager store={store} state={state} filters={filters} live={live} />
        ) : null}
      </section>
    </Page>
  )
}

interface PagerProps {
  store: LogStore
  state: LogState
  filters: Filters
  live: boolean
}

/** Reads older entries, and says how far the log was searched. */
function Pager({ store, state, filters, live }: PagerProps) {
  const { log } = useText().dns
  const { entries } = state
  return (
    <div className="pager">
      <Button
        size="small"
        disabled={state.end || state.loading}
        busy={state.loading && !state.end && entries.length > 0 && !live}
        onClick={() => void store.older()}
      >
        {log.older}
      </Button>
      <span>
        <Searched state={state} filters={filters} />
      </span>
    </div>
  )
}

/** Says that there are newer rows, and shows them. */
function NewRows({ state, onTake }: { state: LogState; onTake: () => void }) {
  const { log } = useText().dns
  return (
    <div className="newrows">
      <Button
        size="small"
        icon="up"
        onClick={() => {
          onTake()
          window.scrollTo({ top: 0 })
        }}
      >
        {log.newRows(state.fresh.length, state.freshMore)}
      </Button>
    </div>
  )
}

interface EntriesProps {
  filters: Filters
  state: LogState
  /** Id of the query whose detail is shown. */
  open: string | null
  change: (change: Search) => void
  onEnd: () => void
}

function Entries({ filters, state, open, change, onEnd }: EntriesProps) {
  const { log } = useText().dns
  const { entries, readAt, error } = state
  const onOpen = (id: string | null) => change({ open: id ?? undefined })
  return (
    <>
      {open !== null && readAt !== null && !entries.some((each) => String(each.id) === open) ? (
        <Linked id={open} onOpen={onOpen} filterBy={change} />
      ) : null}
      {readAt === null && !error ? <Skeleton lines={8} /> : null}
      {entries.length > 0 ? (
        <div className={error ? 'stale' : undefined}>
          <LogTable
            entries={entries}
            open={open}
            onOpen={onOpen}
            filterBy={change}
            dropped={state.dropped}
            onEnd={onEnd}
          />
        </div>
      ) : readAt !== null && Object.keys(filters).length === 0 ? (
        <Empty command="dig @gateway example.com">{log.empty}</Empty>
      ) : null}
    </>
  )
}

interface LinkedProps {
  id: string
  onOpen: (id: string | null) => void
  filterBy: (change: Search) => void
}

/** The query that the address names, where the list does not reach it. */
function Linked({ id, onOpen, filterBy }: LinkedProps) {
  const { log } = useText().dns
  const number = Number(id)
  const known = Number.isSafeInteger(number) && number >= 0
  const query = useGet(
    '/dns/log',
    { query: { before: String(number + 1), limit: 1 } },
    { every: false, enabled: known },
  )
  const found = query.data?.data.filter((each) => each.id === number) ?? []
  if (query.isLoading) return <Skeleton lines={2} />
  return (
    <div className="log__linked">
      <p className="dim sm">{found.length > 0 ? log.linked : log.linkedGone}</p>
      {found.length > 0 ? (
        <LogTable entries={found} open={id} onOpen={onOpen} filterBy={filterBy} dropped={0} onEnd={nothing} />
      ) : null}
    </div>
  )
}

const nothing = () => undefined

/** Time to which the list was read, in milliseconds. Null if that is not known. */
function readTo(state: LogState, filters: Filters): number | null {
  if (state.searchedTo !== null) return Date.parse(state.searchedTo)
  const last = state.entries[state.entries.length - 1]
  if (state.end && filters.from !== undefined) return Date.parse(filters.from)
  return last ? Date.parse(last.time) : null
}

function Searched({ state, filters }: { state: LogState; filters: Filters }) {
  const { log } = useText().dns
  const to = readTo(state, filters)
  return (
    <>
      {log.searched(
        to === null ? null : formatTime(new Date(to).toISOString(), 'seconds'),
        state.entries.length,
      )}{' '}
      {state.searchedTo !== null
        ? log.searchedEarly
        : state.end
          ? filters.from === undefined
            ? log.nothingOlder
            : log.wholeRange
          : log.notRead}{' '}
      {state.entries.length >= MOST ? log.most(MOST) : null}
    </>
  )
}

/** Lists that the sentence names; the others are counted together. */
const NAMED = 3

function LogSentence({ filters, state }: { filters: Filters; state: LogState }) {
  const text = useText()
  const { log } = text.dns
  if (state.readAt === null) return <>{state.error ? log.unread : text.common.loading}</>
  const to = readTo(state, filters)
  const { entries } = state
  if (entries.length === 0) {
    if (Object.keys(filters).length === 0) return <>{log.none}</>
    return <>{log.noMatch(to === null ? null : formatTime(new Date(to).toISOString()))}</>
  }
  const sum = summarise(entries)
  const rest = sum.by.slice(NAMED).reduce((total, each) => total + each.count, 0)
  return (
    <>
      {log.made(
        to === null ? '' : formatTime(new Date(to).toISOString()),
        filters.to ? formatTime(filters.to) : null,
        sum.clients,
        sum.queries,
      )}{' '}
      {sum.blocked === 0 ? (
        log.noneBlocked
      ) : (
        <>
          <Link to="/dns" search={{ ...filters, status: 'blocked' }}>
            {log.blockedCount(sum.blocked)}
          </Link>
          {': '}
          {sum.by.slice(0, NAMED).map(({ reason, list, name, count }, index) => (
            <span key={list ?? reason}>
              {index > 0 ? ', ' : ''}
              {list === null ? (
                log.by(reason, name, count)
              ) : (
                <Link to="/dns" search={{ ...filters, status: 'blocked', list }}>
                  {log.by(reason, name, count)}
                </Link>
              )}
            </span>
          ))}
          {rest > 0 ? `, ${log.byOthers(rest)}` : ''}.
        </>
      )}
    </>
  )
}

/** Records that were lost, or are not written: the log is not complete then. */
function LostRecords() {
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
