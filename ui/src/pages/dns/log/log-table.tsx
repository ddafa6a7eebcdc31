// The rows of the query log. Only those in view are drawn; below 760 px they are cards.

import { useWindowVirtualizer } from '@tanstack/react-virtual'
import { useEffect, useLayoutEffect, useRef, useState, type KeyboardEvent } from 'react'
import { Link } from '@/session/link'
import type { Search } from '@/session/search-params'
import { Button } from '@/components/button'
import { Actions } from '@/components/menu'
import { Tag } from '@/components/state'
import { TwoLines } from '@/components/two-lines'
import { useText } from '@/text'
import { formatTime } from '@/text/format'
import type { Entry } from './filters'
import { Detail } from './detail'
import { answeredBy, becauseOf, clockOf, tookOf } from './entry-words'
import { useNameActions } from './name-actions'
import { Verdict } from './verdict'

interface Props {
  entries: readonly Entry[]
  /** Id of the entry whose detail is shown. */
  open: string | null
  onOpen: (id: string | null) => void
  filterBy: (change: Search) => void
  /** Number of entries that were let go above the first one. */
  dropped: number
  /** Called when the last rows come into view. */
  onEnd: () => void
}

/** Rows before the last at which older ones are read. */
const NEAR_END = 20

/** Time in milliseconds from which an answer is marked as slow. */
const SLOW = 500
const COLUMNS = 9
/** Height of a row in pixels, before it is measured. */
const ROW = 40

export function LogTable({ entries, open, onOpen, filterBy, dropped, onEnd }: Props) {
  const text = useText()
  const { log } = text.dns
  const table = useRef<HTMLTableElement>(null)
  const [top, setTop] = useState(0)
  const virtual = useWindowVirtualizer({
    count: entries.length,
    estimateSize: () => ROW,
    overscan: 16,
    scrollMargin: top,
    getItemKey: (index) => entries[index]?.id ?? index,
  })
  const items = virtual.getVirtualItems()
  const first = items[0]
  const last = items[items.length - 1]
  const above = first ? first.start - top : 0
  const below = last ? virtual.getTotalSize() - (last.end - top) : 0
  const lastIndex = last?.index ?? 0
  const nearEnd = entries.length > 0 && lastIndex >= entries.length - NEAR_END
  useEffect(() => {
    if (nearEnd) onEnd()
  }, [nearEnd, onEnd, entries])
  // Rows that were let go above do not move those that are read.
  const gone = useRef(dropped)
  useLayoutEffect(() => {
    if (dropped > gone.current) window.scrollBy(0, -(dropped - gone.current) * ROW)
    gone.current = dropped
  }, [dropped])
  return (
    <div className="scrollx">
      <table
        ref={(element) => {
          table.current = element
          const offset = element ? Math.round(element.getBoundingClientRect().top + window.scrollY) : top
          if (offset !== top) setTop(offset)
        }}
        className="tbl tbl--card tbl--menu log"
        aria-label={log.label}
        aria-rowcount={entries.length}
      >
        <Head />
        {above > 0 ? <Gap height={above} /> : null}
        {items.map((item) => {
          const entry = entries[item.index]
          if (!entry) return null
          const id = String(entry.id)
          return (
            <tbody key={entry.id} ref={virtual.measureElement} data-index={item.index}>
              <Row
                entry={entry}
                index={item.index}
                open={open === id}
                onOpen={() => onOpen(open === id ? null : id)}
                filterBy={filterBy}
              />
              {open === id ? (
                <tr className="det">
                  <td colSpan={2} aria-hidden="true" />
                  <td colSpan={COLUMNS - 2}>
                    <Detail entry={entry} filterBy={filterBy} />
                  </td>
                </tr>
              ) : null}
            </tbody>
          )
        })}
        {below > 0 ? <Gap height={below} /> : null}
      </table>
    </div>
  )
}

const WIDTHS = ['w-t', 'w-c', undefined, 'w-ty', 'w-v', 'w-b', 'w-a', 'w-m', 'w-x']

function Head() {
  const text = useText()
  const { columns } = text.dns.log
  const { time, client, question, type, verdict, because, answered, took } = columns
  return (
    <>
      <colgroup>
        {WIDTHS.map((width, index) => (
          <col key={index} className={width} />
        ))}
      </colgroup>
      <thead>
        <tr>
          {[time, client, question, type, verdict, because, answered].map((column) => (
            <th key={column} scope="col">
              {column}
            </th>
          ))}
          <th scope="col" className="num">
            {took}
          </th>
          <th scope="col">
            <span className="sr">{text.common.actions}</span>
          </th>
        </tr>
      </thead>
    </>
  )
}

function Gap({ height }: { height: number }) {
  return (
    <tbody aria-hidden="true" className="log__gap">
      <tr>
        <td colSpan={COLUMNS} style={{ height }} />
      </tr>
    </tbody>
  )
}

interface RowProps {
  entry: Entry
  index: number
  open: boolean
  onOpen: () => void
  filterBy: (change: Search) => void
}

function Row({ entry, index, open, onOpen, filterBy }: RowProps) {
  const text = useText()
  const { log } = text.dns
  const blocked = entry.status === 'blocked' || entry.status === 'refused'
  const { question } = entry
  return (
    <tr
      className={[blocked ? 'is-b' : '', open ? 'is-sel' : 'opens'].filter(Boolean).join(' ')}
      aria-rowindex={index + 2}
      tabIndex={0}
      onKeyDown={(event) => press(event, onOpen)}
      onClick={(event) => {
        if (!(event.target as HTMLElement).closest('a, button')) onOpen()
      }}
    >
      <td className="mono dim nowrap">
        <time dateTime={entry.time} title={formatTime(entry.time, 'long')}>
          {clockOf(entry.time)}
        </time>
      </td>
      <td data-l={log.columns.client}>
        <ClientName client={entry.client} filterBy={filterBy} />
      </td>
      <td className="q" data-l={log.columns.question} title={question.name}>
        {question.name}
      </td>
      <td className="dim sm" data-l={log.columns.type}>
        {question.type}
      </td>
      <td data-l={log.columns.verdict}>
        <Verdict entry={entry} />
      </td>
      <td className="mid log__because" data-l={log.columns.because}>
        {becauseOf(entry, log)}
      </td>
      <td className="nowrap log__by" data-l={log.columns.answered} title={answeredBy(entry, log.via)}>
        <AnsweredBy entry={entry} />
      </td>
      <td className="num nowrap" data-l={log.columns.took}>
        {entry.elapsed_ms >= SLOW ? (
          <>
            <Tag>{log.slow}</Tag> <span className="strong">{tookOf(entry.elapsed_ms)}</span>
          </>
        ) : (
          tookOf(entry.elapsed_ms)
        )}
      </td>
      <td className="num">
        <RowActions entry={entry} blocked={blocked} />
      </td>
    </tr>
  )
}

/** Enter opens the row, and arrows go to the next one. */
function press(event: KeyboardEvent<HTMLTableRowElement>, onOpen: () => void) {
  if (event.target !== event.currentTarget) return
  if (event.key === 'Enter') onOpen()
  const row = event.currentTarget.closest('tbody')
  const next =
    event.key === 'ArrowDown'
      ? row?.nextElementSibling
      : event.key === 'ArrowUp'
        ? row?.previousElementSibling
        : null
  const focusable = next?.querySelector<HTMLElement>('tr[tabindex]')
  if (!focusable) return
  event.preventDefault()
  focusable.focus()
}

interface ClientProps extends Pick<RowProps, 'filterBy'> {
  client: Entry['client']
}

/** The device or the address that asked. */
function ClientName({ client, filterBy }: ClientProps) {
  const { log } = useText().dns
  if (!client) return <span className="dim">{log.noClient}</span>
  const name = client.name ?? client.ip
  return (
    <TwoLines second={client.name ? client.ip : log.unknownClient}>
      {client.device_id ? (
        <Link className="med" to={`/devices/${client.device_id}`}>
          {name}
        </Link>
      ) : (
        <button
          type="button"
          className="plainlink med"
          onClick={() => filterBy({ client: client.ip, open: undefined })}
        >
          {name}
        </button>
      )}
    </TwoLines>
  )
}

function AnsweredBy({ entry: { upstream, egress, status } }: { entry: Entry }) {
  const { log } = useText().dns
  if (upstream !== null && status !== 'cached')
    return (
      <>
        {upstream}
        {egress === null ? null : <span className="dim"> {log.via(egress)}</span>}
      </>
    )
  const blocked = status === 'blocked' || status === 'refused'
  return (
    <span className="dim">
      {status === 'cached'
        ? log.fromCache
        : blocked
          ? log.notAsked
          : status === 'error'
            ? log.noAnswer
            : log.local}
    </span>
  )
}

function RowActions({ entry, blocked }: { entry: Entry; blocked: boolean }) {
  const { log } = useText().dns
  const actions = useNameActions(entry)
  const { question } = entry
  const [quick] = actions
  const verb = blocked ? 'allow' : 'block'
  return (
    <span className="acts">
      {quick ? (
        <Button
          kind="ghost"
          size="small"
          className="log__quick"
          needs={quick.needs}
          aria-label={log.quickFor(verb, question.name)}
          onClick={quick.run}
        >
          {log.quick(verb)}
        </Button>
      ) : null}
      <Actions label={log.actionsFor(question.name)} actions={actions} />
    </span>
  )
}
