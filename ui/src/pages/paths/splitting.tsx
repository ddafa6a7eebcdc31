// Splitting: the pools with the share of each tunnel, and how they are set up.

import { call, client, type Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { Link } from '@/session/link'
import { Page } from '@/components/answer'
import { Button } from '@/components/button'
import { LoadedSection, Empty } from '@/components/section'
import { StateWord, Tag, type State } from '@/components/state'
import { Table } from '@/components/table'
import { useAction } from '@/components/action'
import { useText } from '@/text'
import { formatBytes, formatNumber } from '@/text/format'
import { Endpoints } from './splitting-endpoints'
import { Cover, DnsOfPools, TransportFacts } from './splitting-facts'

type Status = Schemas['SplittingStatus']

const STATES: Record<string, State> = { active: 'ok', draining: 'degraded', down: 'down' }

export default function Splitting() {
  const text = useText()
  const words = text.paths.splitting
  const status = useGet('/splitting/status', {}, { every: 5000 })
  return (
    <Page
      question={words.question}
      answer={status.error ? text.common.unreachable : <Sentence status={status.data?.data} />}
    >
      <LoadedSection
        title={words.pools}
        hint={words.poolsHint}
        query={status}
        isEmpty={(read) => read.policies.length === 0}
        empty={<Empty command={words.poolsEmptyCommand}>{words.poolsEmpty}</Empty>}
      >
        {(read) => (
          <>
            {read.policies.map((pool) => (
              <Pool key={pool.policy_id} pool={pool} />
            ))}
          </>
        )}
      </LoadedSection>
      <Activation status={status.data?.data} />
      <Endpoints />
      <div className="cols cols--2">
        <TransportFacts />
        <DnsOfPools />
      </div>
      <Cover />
    </Page>
  )
}

function Sentence({ status }: { status: Status | undefined }) {
  const text = useText()
  const words = text.paths.splitting
  if (!status) return <>{text.common.loading}</>
  if (status.policies.length === 0) return <>{words.off}</>
  const flows = status.policies.reduce((sum, pool) => sum + pool.flows, 0)
  const without = new Set(
    status.policies.flatMap((pool) =>
      pool.endpoints.filter((member) => member.state !== 'active').map((member) => member.tunnel),
    ),
  )
  return (
    <>
      <Link to="/policies">{words.answer(status.policies.length, flows)}</Link>{' '}
      {without.size > 0 ? words.short(without.size) : words.all}
    </>
  )
}

function Pool({ pool }: { pool: Schemas['Pool'] }) {
  const text = useText()
  const { columns, states, ...words } = text.paths.splitting
  return (
    <div className="pool">
      <h3 className="inline">
        <Link className="med" to={`/policies/${pool.policy_id}`}>
          {pool.policy}
        </Link>
        <StateWord state={pool.active ? 'ok' : 'idle'}>
          {pool.active ? words.active : words.inactive}
        </StateWord>
        <span className="dim sm">
          {[
            words.stickies[pool.sticky] ?? pool.sticky,
            words.flows(pool.flows),
            pool.new_flows_per_min === null ? null : words.newFlows(formatNumber(pool.new_flows_per_min, 1)),
          ]
            .filter(Boolean)
            .join(', ')}
        </span>
      </h3>
      <Table
        rows={pool.endpoints}
        id={(member) => member.tunnel}
        columns={[
          { head: columns.tunnel, bare: true, className: 'med', cell: (member) => member.tunnel },
          {
            head: columns.state,
            cell: (member) => (
              <span className="two">
                <StateWord state={STATES[member.state] ?? 'unknown'}>{states[member.state]}</StateWord>
                {member.reason ? <small lang="en">{member.reason}</small> : null}
              </span>
            ),
          },
          { head: columns.share, cell: (member) => <Share percent={member.share_pct} /> },
          { head: columns.newShare, cell: (member) => <Share percent={member.new_share_pct} /> },
          { head: columns.weight, numeric: true, cell: (member) => member.weight },
          { head: columns.flows, numeric: true, cell: (member) => formatNumber(member.flows) },
          { head: columns.bytes, numeric: true, cell: (member) => formatBytes(member.bytes) },
          {
            head: columns.rtt,
            numeric: true,
            cell: (member) => (member.rtt_ms === null ? '-' : `${formatNumber(member.rtt_ms, 1)} ms`),
          },
        ]}
      />
    </div>
  )
}

/** A share as a bar with its number. */
function Share({ percent }: { percent: number | null }) {
  const text = useText()
  if (percent === null) return <span className="dim">{text.paths.splitting.noFlows}</span>
  return (
    <span className="share">
      <span className="share__bar" aria-hidden="true">
        <span style={{ width: `${Math.min(100, Math.max(0, percent))}%` }} />
      </span>
      <span className="num">{formatNumber(percent, 1)} %</span>
    </span>
  )
}

/** Policies with several tunnels as hops, each with the button that makes it split. */
function Activation({ status }: { status: Status | undefined }) {
  const text = useText()
  const words = text.paths.splitting
  const policies = useGet('/routing/policies')
  const change = useAction(
    ({ id, splitting }: Schemas['RoutingPolicy']) =>
      call(client.POST('/splitting/activate', { body: { policy_id: id, enabled: !splitting } })),
    ({ enabled }, { name }) => (enabled ? words.isOn(name) : words.isOff(name)),
  )
  return (
    <LoadedSection title={words.activation} hint={words.activationHint} query={policies} lines={2}>
      {(all) => {
        const candidates = all.filter(
          (policy) => policy.splitting || policy.hops.filter((hop) => hop.type === 'vpn').length > 1,
        )
        if (candidates.length === 0) return <p className="quiet">{words.noCandidates}</p>
        return (
          <ul className="rows rows--act">
            {candidates.map((policy) => {
              const inForce = status?.policies.some((pool) => pool.policy_id === policy.id) ?? false
              return (
                <li key={policy.id}>
                  <span className="inline">
                    <Link className="med" to={`/policies/${policy.id}`}>
                      {policy.name}
                    </Link>
                    <span className="dim">{policy.splitting ? words.splits : words.splitsNot}</span>
                    {policy.splitting && !inForce ? <Tag kind="pending">{words.inactive}</Tag> : null}
                  </span>
                  <Button size="small" needs="operator" busy={change.busy} onClick={() => change.run(policy)}>
                    {policy.splitting ? words.deactivate : words.activate}
                  </Button>
                </li>
              )
            })}
          </ul>
        )
      }}
    </LoadedSection>
  )
}
