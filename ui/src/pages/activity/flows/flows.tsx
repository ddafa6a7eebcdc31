// The flows of the LAN hosts: those that go on, as they change, and those that have ended, page by page.

import { useMemo, useSyncExternalStore } from 'react'
import { readLines } from '@/api/lines'
import { useGet } from '@/api/query'
import { Page } from '@/components/answer'
import { Button } from '@/components/button'
import { DataTable } from '@/components/data-table'
import { LiveButton } from '@/components/live-button'
import { Empty, Failure, Loaded, Section } from '@/components/section'
import { useSearchParams } from '@/session/search-params'
import { stringifySearch } from '@/session/search-params'
import { useText } from '@/text'
import { formatNumber } from '@/text/format'
import { FlowDetail } from './flow-detail'
import { FlowFilters } from './flow-filters'
import { columnsOf } from './flow-columns'
import { FILTERS, FlowStream, keyOf, merged, PAGE, queryOf, type Flow } from './flow-list'

export default function Flows() {
  const text = useText()
  const words = text.flows
  const [search, change] = useSearchParams()
  const filters = queryOf(search)
  // Pages before the first one, and ranges that end, do not change any more.
  const closed = search.before !== undefined || search.until !== undefined || search.state === 'ended'
  const live = !closed && search.live !== 'off'
  const query = useGet(
    '/flows',
    { query: { ...filters, limit: PAGE, before: search.before } },
    { every: closed ? false : live ? 5000 : 15_000 },
  )
  const { news, error } = useNews(live ? stringifySearch(filters) : null)
  const read = query.data?.data
  const rows = useMemo(
    () => merged(read ?? [], live ? news : [], query.dataUpdatedAt),
    [read, live, news, query.dataUpdatedAt],
  )
  return (
    <Page
      question={words.question}
      actions={<LiveButton live={live} why={closed ? words.closed : undefined} />}
      answer={query.error ? text.common.unreachable : read ? <Sentence flows={rows} /> : text.common.loading}
    >
      <Section title={words.list} hint={words.listHint}>
        <FlowFilters search={search} change={change} />
        <Failure error={error} />
        <Loaded query={query} lines={8}>
          {() =>
            rows.length > 0 ? (
              <DataTable
                label={words.list}
                rows={rows}
                columns={columnsOf(text)}
                id={keyOf}
                dense
                selected={search.open ?? null}
                open={(flow) => change({ open: search.open === keyOf(flow) ? undefined : keyOf(flow) })}
                detail={(flow) => <FlowDetail flow={flow} />}
              />
            ) : (
              <Empty command="gateway-ctl flows">
                {FILTERS.some((name) => search[name]) ? words.noMatch : words.none}
              </Empty>
            )
          }
        </Loaded>
        <Pager headers={query.data?.headers} />
      </Section>
    </Page>
  )
}

/** What the stream of these filters says; nothing for null. */
function useNews(filters: string | null) {
  const stream = useMemo(
    () =>
      filters === null
        ? null
        : new FlowStream((signal, take) => readLines(`${'/api/v1/flows/stream'}${filters}`, signal, take)),
    [filters],
  )
  return useSyncExternalStore(stream?.subscribe ?? silent, stream?.snapshot ?? nothing)
}

const NOTHING = { news: [], error: null }
const nothing = () => NOTHING
const silent = () => () => undefined

function Sentence({ flows }: { flows: readonly Flow[] }) {
  const words = useText().flows
  const active = flows.filter((flow) => flow.active).length
  const denied = flows.filter((flow) => flow.verdict !== 'permitted').length
  return <>{words.sentence(active, flows.length - active, denied)}</>
}

function Pager({ headers }: { headers: Headers | undefined }) {
  const text = useText()
  const [{ before }, change] = useSearchParams()
  const next = headers?.get('X-Next-Before')
  const searched = headers?.get('X-Searched-Back-To')
  if (!next && before === undefined) return null
  return (
    <p className="pager">
      {before === undefined ? null : (
        <Button size="small" onClick={() => change({ before: undefined, open: undefined })}>
          {text.alerts.newest}
        </Button>
      )}
      {next ? (
        <Button size="small" onClick={() => change({ before: next, open: undefined })}>
          {text.alerts.older}
        </Button>
      ) : null}
      {searched ? <span>{text.flows.searched(searched)}</span> : null}
      <span className="dim sm">{text.flows.page(formatNumber(PAGE))}</span>
    </p>
  )
}
