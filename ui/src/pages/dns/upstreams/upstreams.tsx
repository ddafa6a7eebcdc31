// Upstreams: whether names are resolved, how fast and by whom; the cache; the settings of the resolver.

import { useGet } from '@/api/query'
import { Link } from '@/session/link'
import { Facts } from '@/components/facts'
import { Page } from '@/components/answer'
import { DataTable } from '@/components/data-table'
import { LoadedSection, Empty } from '@/components/section'
import { StateWord, type State } from '@/components/state'
import { TwoLines } from '@/components/two-lines'
import { useText } from '@/text'
import { formatNumber, formatTime } from '@/text/format'
import type { Schemas } from '@/api/client'
import { tookOf } from '../log/entry-words'
import { Cache } from './cache'
import { Clients } from './clients'
import { QueryChart } from './query-chart'
import { Rotation } from './rotation'
import { ResolverSettings } from './settings'

type Upstream = Schemas['Upstream']

export default function Upstreams() {
  const text = useText()
  return (
    <Page question={text.dns.upstreams.question} answer={<UpstreamSentence />}>
      <UpstreamList />
      <QueryChart />
      <Rotation />
      <ResolverFacts />
      <Cache />
      <Clients />
      <ResolverSettings />
    </Page>
  )
}

function keyOf({ protocol, address, egress }: Upstream): string {
  return `${protocol} ${address} ${egress}`
}

/** An upstream that a forwarder uses too comes more than once, with the same figures. */
function distinct(upstreams: readonly Upstream[]): Upstream[] {
  return [...new Map(upstreams.map((each) => [keyOf(each), each])).values()]
}

function stateOf(upstream: Upstream): State {
  if (!upstream.ok) return 'down'
  return upstream.rtt_ms === null ? 'idle' : 'ok'
}

function UpstreamSentence() {
  const text = useText()
  const { sentence } = text.dns.upstreams
  const query = useGet('/dns/status', {}, { every: 5000 })
  if (query.error) return <StateWord state="unknown">{sentence.stale}</StateWord>
  const status = query.data?.data
  if (!status) return <>{text.common.loading}</>
  const { cache } = status
  const upstreams = distinct(status.upstreams)
  const bad = upstreams.filter((each) => !each.ok).length
  const times = upstreams.flatMap((each) => (each.rtt_ms === null ? [] : [each.rtt_ms]))
  const looked = cache.hits + cache.misses
  return (
    <>
      {!status.running
        ? sentence.stopped
        : upstreams.length === 0
          ? sentence.none
          : bad > 0
            ? sentence.someFail(bad, upstreams.length)
            : times.length === 0
              ? sentence.unused(upstreams.length)
              : sentence.allOk(upstreams.length)}{' '}
      {times.length > 0 ? `${sentence.fastest(tookOf(Math.min(...times)))} ` : ''}
      <Link to="/dns">{sentence.today(status.queries_today)}</Link>{' '}
      <Link to="/dns" search={{ status: 'blocked' }}>
        {sentence.blocked(status.blocked_today)}
      </Link>
      {'. '}
      {looked > 0 ? sentence.hits(`${formatNumber((cache.hits / looked) * 100)} %`) : ''}
    </>
  )
}

function UpstreamList() {
  const { list } = useText().dns.upstreams
  const query = useGet('/dns/status', {}, { every: 5000 })
  return (
    <LoadedSection
      title={list.title}
      hint={list.hint}
      query={query}
      isEmpty={(status) => status.upstreams.length === 0}
      empty={<Empty>{list.empty}</Empty>}
    >
      {(status) => (
        <>
          <UpstreamTable rows={distinct(status.upstreams)} />
          {status.problems.length > 0 ? (
            <div className="err">
              <p className="strong">{list.problems}</p>
              {status.problems.map((problem) => (
                <p key={problem}>{problem}</p>
              ))}
            </div>
          ) : null}
        </>
      )}
    </LoadedSection>
  )
}

function UpstreamTable({ rows }: { rows: ReturnType<typeof distinct> }) {
  const text = useText()
  const { list } = text.dns.upstreams
  const { columns } = list
  const { ok, down, unused: idle } = list.states
  const words: Partial<Record<State, string>> = { ok, down, idle }
  return (
    <DataTable
      label={list.title}
      rows={rows}
      id={keyOf}
      columns={[
        {
          head: columns.address,
          sort: 'address',
          bare: true,
          cell: (row) => (
            <TwoLines second={text.dns.zones.forwarders.protocols[row.protocol] ?? row.protocol}>
              <Link className="med mono" to="/dns" search={{ upstream: row.address }}>
                {row.address}
              </Link>
            </TwoLines>
          ),
        },
        {
          head: columns.state,
          sort: stateOf,
          cell: (row) => <StateWord state={stateOf(row)}>{words[stateOf(row)]}</StateWord>,
        },
        {
          head: columns.rtt,
          sort: 'rtt_ms',
          numeric: true,
          cell: (row) => (row.rtt_ms === null ? '-' : `${formatNumber(row.rtt_ms, 1)} ms`),
        },
        { head: columns.queries, sort: 'queries', numeric: true, cell: (row) => formatNumber(row.queries) },
        {
          head: columns.failures,
          sort: 'failures',
          numeric: true,
          cell: (row) => formatNumber(row.failures),
        },
        {
          head: columns.egress,
          sort: 'egress',
          cell: (row) => (
            <Link to="/dns" search={{ egress: row.egress }}>
              {row.egress === 'auto' ? text.dns.log.defaultRoute : row.egress}
            </Link>
          ),
        },
        {
          head: columns.last,
          sort: 'last_error',
          cell: (row) => <span className="mid">{row.last_error ?? '-'}</span>,
        },
      ]}
    />
  )
}

function ResolverFacts() {
  const text = useText()
  const { facts } = text.dns.upstreams
  const query = useGet('/dns/status', {}, { every: 5000 })
  return (
    <LoadedSection title={facts.title} query={query}>
      {(status) => (
        <Facts
          className="facts dns-facts"
          facts={[
            [
              facts.running,
              <StateWord key="state" state={status.running ? 'ok' : 'down'}>
                {status.running ? facts.states.running : facts.states.stopped}
              </StateWord>,
            ],
            [
              facts.listen,
              status.listen.map(({ address, error }) => `${address}${error ? ` (${error})` : ''}`).join(' '),
              'mono',
            ],
            [facts.backend, facts.backends[status.backend] ?? status.backend],
            [facts.mode, facts.modes[status.mode]],
            [facts.dnssec, status.dnssec ? facts.validated : facts.notValidated],
            [
              facts.filter,
              status.blocking.paused_until
                ? facts.filterPaused(formatTime(status.blocking.paused_until))
                : status.blocking.enabled
                  ? facts.filterOn(status.blocking.mode, status.blocking.ttl)
                  : facts.filterOff,
            ],
            [facts.packetCache, formatNumber(status.repeated)],
            [facts.overloaded, formatNumber(status.overloaded)],
            [facts.limited, formatNumber(status.limited)],
          ]}
        />
      )}
    </LoadedSection>
  )
}
