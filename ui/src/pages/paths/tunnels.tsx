// The tunnels: whether each is up, since when, and which policies use it.

import { useGet } from '@/api/query'
import type { Schemas } from '@/api/client'
import { Link, useGo } from '@/session/link'
import { useSearchParams } from '@/session/search-params'
import { BandSection } from '@/components/bands'
import { Page } from '@/components/answer'
import { LinkButton } from '@/components/link-button'
import { DataTable } from '@/components/data-table'
import type { Column } from '@/components/table'
import { useCounters, useRates } from '@/components/history'
import { LoadedSection, Empty, Loaded } from '@/components/section'
import { Segmented } from '@/components/segmented'
import { Sparkline } from '@/components/sparkline'
import { StateWord } from '@/components/state'
import { Age, useNow } from '@/components/time'
import { clockOf } from '@/components/time-drawing'
import { TwoLines } from '@/components/two-lines'
import { useText } from '@/text'
import { formatBytes, formatRate, formatTime } from '@/text/format'
import { TunnelActions } from './tunnel-actions'
import { bandsOf, beginOf, RANGES, recentRates, type Recorded } from './tunnel-history'
import { lastHandshake, remoteOf, stateOf } from './tunnel-state'

type Tunnel = Schemas['Tunnel']
type Egress = Schemas['Egress']

export default function Tunnels() {
  const text = useText()
  const tunnels = useGet('/tunnels', {}, { every: 3000 })
  const egress = useGet('/tunnels/egress', {}, { every: 3000 })
  const [search, change] = useSearchParams()
  const range = search.range === 'day' ? 'day' : 'hour'
  const history = useGet('/tunnels/history', { query: minutesOf(range) }, { every: 60_000 })
  useTunnelCounters(tunnels.data?.data, tunnels.dataUpdatedAt)
  const wanted = search.state
  const shownBy = (tunnel: Tunnel) =>
    wanted === undefined || wanted === (stateOf(tunnel).usable ? 'usable' : 'not-usable')
  const list = text.paths.list
  return (
    <Page
      question={text.paths.question}
      actions={<NewLinks />}
      answer={
        <Sentence
          tunnels={tunnels.error ? undefined : tunnels.data?.data}
          failed={tunnels.error !== null}
          egress={egress.error ? undefined : egress.data?.data}
        />
      }
    >
      <LoadedSection
        title={list.title}
        actions={
          wanted === undefined ? null : (
            <button type="button" className="link" onClick={() => change({ state: undefined })}>
              {list.showAll}
            </button>
          )
        }
        query={tunnels}
        empty={<Empty command={list.emptyCommand}>{list.empty}</Empty>}
        lines={5}
      >
        {(all) => {
          const shown = all.filter(shownBy)
          if (shown.length === 0) return <p className="quiet">{list.noMatch}</p>
          return <List tunnels={shown} egress={egress.data?.data} history={history.data?.data} />
        }}
      </LoadedSection>
      {tunnels.data?.data.length === 0 ? null : (
        <Loaded query={history}>
          {(recorded) => (
            <States
              recorded={recorded}
              range={range}
              onRange={(next) => change({ range: next === 'hour' ? undefined : next })}
            />
          )}
        </Loaded>
      )}
    </Page>
  )
}

function NewLinks() {
  const { list } = useText().paths
  return (
    <>
      <LinkButton needs="operator" to="/paths/tunnels/new">
        {list.new}
      </LinkButton>
      <LinkButton kind="primary" needs="operator" to="/paths/tunnels/import">
        {list.import}
      </LinkButton>
    </>
  )
}

interface SentenceProps {
  tunnels: Tunnel[] | undefined
  failed: boolean
  egress: Egress[] | undefined
}

function Sentence({ tunnels, failed, egress }: SentenceProps) {
  const text = useText()
  const answer = text.paths.answer
  if (failed) return <>{text.common.unreachable}</>
  if (!tunnels) return <>{text.common.loading}</>
  if (tunnels.length === 0) return <>{answer.none}</>
  const up = tunnels.filter((tunnel) => stateOf(tunnel).usable)
  const others = tunnels.filter((tunnel) => !stateOf(tunnel).usable)
  const policies = new Set(egress?.map((each) => each.policy_id))
  const waiting = new Set(egress?.filter((each) => each.state !== 'up').map((each) => each.policy_id))
  const [counted, are] = answer.up(up.length, tunnels.length)
  const [named, have] = waiting.size > 0 ? answer.policies(waiting.size) : answer.policiesUp(policies.size)
  return (
    <>
      <Link to="/paths" search={{ state: 'usable' }}>
        {counted}
      </Link>
      {are}{' '}
      {others.slice(0, 3).map((tunnel) => (
        <span key={tunnel.id}>
          <Link to={`/paths/tunnels/${tunnel.id}`}>{tunnel.name}</Link>
          {restOf(tunnel)}{' '}
        </span>
      ))}
      {egress === undefined ? null : policies.size === 0 ? (
        answer.noPolicy
      ) : (
        <>
          <Link to="/policies">{named}</Link>
          {have}
        </>
      )}
    </>
  )

  function restOf(tunnel: Tunnel): string {
    const { word } = stateOf(tunnel)
    const state = text.paths.states[word] ?? word
    return tunnel.last_change ? answer.notUp(state, formatTime(tunnel.last_change)) : answer.neverUp(state)
  }
}

/** Rates of tunnels are computed from their counters. */
export function useTunnelCounters(tunnels: readonly Tunnel[] | undefined, readAt: number) {
  useCounters(readAt, () =>
    (tunnels ?? []).flatMap((tunnel) =>
      tunnel.rx_bytes === undefined || tunnel.tx_bytes === undefined
        ? []
        : [[`tunnel.${tunnel.id}`, [tunnel.rx_bytes, tunnel.tx_bytes]] as const],
    ),
  )
}

export function minutesOf(range: string) {
  return range === 'day' ? {} : { minutes: 60 }
}

interface StatesProps {
  recorded: Recorded[]
  range: string
  onRange: (range: string) => void
}

/** The states of all tunnels over time. */
function States({ recorded, range, onRange }: StatesProps) {
  const text = useText()
  const now = Math.ceil(useNow() / 5000) * 5000
  const words = text.paths.history
  const from = beginOf(recorded, RANGES[range] ?? 0, now)
  return (
    <BandSection
      title={words.states}
      actions={
        <Segmented
          label={words.range}
          value={range}
          options={Object.entries(words.ranges)}
          onChange={onRange}
        />
      }
      label={words.chart(clockOf(from), clockOf(now))}
      subject={text.paths.list.tunnel}
      rows={recorded.map((each) => ({
        name: each.name,
        sub: null,
        bands: bandsOf(each, from, now, (status) => text.paths.states[status] ?? status),
      }))}
      from={from}
      now={now}
      legend={words.legend}
    />
  )
}

interface ListProps {
  tunnels: Tunnel[]
  egress: Egress[] | undefined
  history: Recorded[] | undefined
}

function List({ tunnels, egress, history }: ListProps) {
  const text = useText()
  const go = useGo()
  const list = text.paths.list
  const columns: Column<Tunnel>[] = [
    {
      head: list.tunnel,
      sort: (tunnel) => tunnel.name,
      bare: true,
      cell: (row) => (
        <TwoLines second={[text.paths.types[row.type], row.interface].filter(Boolean).join(', ')}>
          <Link className="med" to={`/paths/tunnels/${row.id}`}>
            {row.name}
          </Link>
        </TwoLines>
      ),
    },
    { head: list.state, sort: (tunnel) => stateOf(tunnel).word, cell: (row) => <TunnelState tunnel={row} /> },
    {
      head: list.endpoint,
      cell: (row) => (
        <TwoLines second={row.exit_ip ? list.exit(row.exit_ip) : list.noExit}>
          {remoteOf(row) ?? '-'}
        </TwoLines>
      ),
    },
    {
      head: list.rate,
      wide: true,
      cell: (row) => <Traffic recorded={history?.find((each) => each.tunnel_id === row.id)} />,
    },
    {
      head: list.received,
      sort: (tunnel) => tunnel.rx_bytes ?? 0,
      numeric: true,
      cell: (row) => <Counter tunnel={row} bytes={row.rx_bytes} which="received" />,
    },
    {
      head: list.sent,
      sort: (tunnel) => tunnel.tx_bytes ?? 0,
      numeric: true,
      cell: (row) => <Counter tunnel={row} bytes={row.tx_bytes} which="sent" />,
    },
    { head: list.policies, cell: (row) => <Policies of={row.id} egress={egress} /> },
    { cell: (row) => <TunnelActions tunnel={row} /> },
  ]
  return (
    <DataTable
      label={list.label}
      className="tbl--end"
      rows={tunnels}
      columns={columns}
      id={(tunnel) => tunnel.id}
      open={(tunnel) => go(`/paths/tunnels/${tunnel.id}`)}
    />
  )
}

/** The state of a tunnel in words, with the age of its last handshake or of the change. */
export function TunnelState({ tunnel }: { tunnel: Tunnel }) {
  const text = useText()
  const { state, word, usable } = stateOf(tunnel)
  const handshake = lastHandshake(tunnel)
  const shaken = tunnel.type === 'wireguard' && (usable || word === 'degraded' || word === 'unhealthy')
  return (
    <TwoLines
      second={
        shaken ? (
          handshake ? (
            <>
              {text.paths.list.handshakeWord} <Age time={handshake} />
            </>
          ) : (
            text.paths.list.noHandshake
          )
        ) : tunnel.last_change ? (
          <Age time={tunnel.last_change} />
        ) : (
          '-'
        )
      }
    >
      <StateWord state={state}>{text.paths.states[word] ?? word}</StateWord>
    </TwoLines>
  )
}

function Traffic({ recorded }: { recorded: Recorded | undefined }) {
  const now = useNow()
  return recorded ? <Sparkline values={recentRates(recorded, now, 60)} /> : <>-</>
}

interface CounterProps {
  tunnel: Tunnel
  bytes: number | undefined
  which: 'received' | 'sent'
}

function Counter({ tunnel, bytes, which }: CounterProps) {
  const rate = useRates()(`tunnel.${tunnel.id}`)?.[which === 'received' ? 0 : 1] ?? null
  return (
    <TwoLines second={rate === null || !tunnel.interface ? '-' : formatRate(rate)}>
      {bytes === undefined || !tunnel.interface ? '-' : formatBytes(bytes)}
    </TwoLines>
  )
}

function Policies({ of, egress }: { of: string; egress: Egress[] | undefined }) {
  const text = useText()
  if (!egress) return <>-</>
  const using = egress.filter((each) => each.tunnel_id === of)
  if (using.length === 0) return <span className="dim">{text.paths.list.noPolicies}</span>
  return (
    <span className="inline">
      {using.map((each) => (
        <Link key={each.policy_id} to={`/policies/${each.policy_id}`}>
          {each.policy}
        </Link>
      ))}
    </span>
  )
}
