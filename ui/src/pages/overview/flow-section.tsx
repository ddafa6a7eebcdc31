// The live paths: the graph, a list of policies on small screens, and a table.

import { useMemo, useState } from 'react'
import { useGet } from '@/api/query'
import { Link } from '@/session/link'
import { useCounters, useRates } from '@/components/history'
import { Icon } from '@/components/icons'
import { HopChip, Path } from '@/components/path'
import { LoadedSection, Empty } from '@/components/section'
import { Glyph, StateWord, type State } from '@/components/state'
import { Table } from '@/components/table'
import { TwoLines } from '@/components/two-lines'
import { useText, type Text } from '@/text'
import { formatRate, formatTime } from '@/text/format'
import { buildFlow, countersOf, type Flow, type PolicyRow, type Words } from './flow-model'
import { layOut, type Placed } from './flow-layout'

export function FlowSection() {
  const text = useText()
  const [table, setTable] = useState(false)
  const graph = useGraph()
  const flow = useFlow()
  useCounters(graph.dataUpdatedAt, () => (graph.data ? countersOf(graph.data.data) : []))
  const rates = flow?.rows.some((row) => row.rate !== null) ?? false
  return (
    <LoadedSection
      title={text.overview.flow.title}
      hint={
        <span className="only-wide">
          {flow === null || rates ? text.overview.flow.hint(flow?.hidden ?? 0) : text.overview.flow.noRates}
        </span>
      }
      actions={
        <>
          {table ? null : <Legend />}
          <button type="button" className="link" aria-pressed={table} onClick={() => setTable(!table)}>
            <Icon name="table" />
            {table ? text.common.showAsChart : text.common.showAsTable}
          </button>
        </>
      }
      query={graph}
      lines={8}
    >
      {() =>
        flow === null ? null : flow.rows.length === 0 ? (
          <Empty
            action={
              <Link className="btn" to="/policies">
                {text.overview.flow.firstPolicy}
              </Link>
            }
          >
            {text.overview.flow.empty}
          </Empty>
        ) : table ? (
          <FlowTable flow={flow} />
        ) : (
          <>
            <div className="only-wide">
              <Graph flow={flow} />
            </div>
            <FlowList flow={flow} />
          </>
        )
      }
    </LoadedSection>
  )
}

function Legend() {
  const text = useText()
  const kinds = [
    ['ok', text.overview.flow.through],
    ['blocked', text.overview.flow.blocked],
    ['direct', text.overview.flow.direct],
    ['none', text.overview.flow.unusable],
  ] as const
  return (
    <span className="legend only-wide">
      {kinds.map(([kind, label]) => (
        <span key={kind}>
          <svg className="flow" viewBox="0 0 22 8" aria-hidden="true">
            <path className={`line e-${kind}`} d="M0 4H22" />
          </svg>
          {label}
        </span>
      ))}
    </span>
  )
}

/** The paths as the daemon evaluates them, one read for the graph and what stands around it. */
export function useGraph() {
  return useGet('/policy/paths/graph', {}, { every: 6000 })
}

/** Everything that the graph is built from. Null until it is there. */
function useFlow(): Flow | null {
  const text = useText()
  const graph = useGraph().data?.data
  const policies = useGet('/routing/policies', {}, { every: 60_000 }).data?.data
  const devices = useGet('/devices', {}, { every: 60_000 }).data?.data
  const groups = useGet('/device-groups', {}, { every: 60_000 }).data?.data
  const exceptions = useGet('/exceptions/active', {}, { every: 30_000 }).data?.data
  const rates = useRates()
  const byId = useMemo(() => new Map((devices ?? []).map((device) => [device.id, device])), [devices])
  const groupById = useMemo(() => new Map((groups ?? []).map((group) => [group.id, group])), [groups])
  if (!graph) return null
  return buildFlow({
    graph,
    policies: policies ?? [],
    devices: byId,
    groups: groupById,
    exceptions: exceptions ?? [],
    rate: (counter) => {
      const found = rates(counter)
      return found ? found.reduce((sum, each) => sum + each, 0) : null
    },
    words: wordsOf(text),
  })
}

function wordsOf(text: Text): Words {
  const { flow, uplinks } = text.overview
  return {
    devices: (count) => text.common.devices(count),
    deviceList: flow.deviceList,
    everything: flow.everything,
    source: (type) => flow.sources[type] ?? type,
    exceptionUntil: (time) => (time ? flow.exceptionUntil(formatTime(time)) : ''),
    noPolicy: flow.noPolicy,
    noPolicyName: flow.noPolicyName,
    noPolicyDetail: flow.noPolicyDetail,
    origin: (origin) => flow.origins[origin] ?? origin,
    blocked: flow.blocked,
    policyDevices: (count) => text.common.devices(count),
    usableHops: flow.usableHops,
    noHops: flow.noHops,
    hopDown: (reason) => reason || flow.hopDown,
    rate: formatRate,
    uplink: (state, active) =>
      active
        ? uplinks.active.toLowerCase()
        : state === 'online'
          ? uplinks.standby.toLowerCase()
          : (uplinks.words[state] ?? state).toLowerCase(),
  }
}

function summaryOf(flow: Flow, text: Text): string {
  const count = (edge: string) => flow.rows.filter((row) => row.edge === edge).length
  return text.overview.flow.summary(count('ok'), count('blocked'), count('direct'))
}

function Graph({ flow }: { flow: Flow }) {
  const text = useText()
  const layout = layOut(flow)
  const words = text.overview.flow
  return (
    <svg
      className="flow"
      viewBox={`0 0 1168 ${layout.height}`}
      role="group"
      aria-label={summaryOf(flow, text)}
    >
      <text className="colh" x="0" y="14">
        {words.devices}
      </text>
      <text className="colh" x="318" y="14">
        {words.policy}
      </text>
      <text className="colh" x="656" y="14">
        {words.hops}
      </text>
      <text className="colh" x="984" y="14">
        {words.uplinks}
      </text>
      {layout.lines.map((line) => (
        <g key={line.id} aria-hidden="true">
          {line.band > 0 ? (
            <path className={`band e-${line.edge}`} strokeWidth={line.band} d={line.path} />
          ) : null}
          <path className={`line e-${line.edge}`} d={line.path} />
        </g>
      ))}
      {layout.stops.map((stop) => (
        <use
          key={stop.id}
          className="c-blocked"
          href="#g-blocked"
          x={stop.x}
          y={stop.y}
          width="22"
          height="22"
          aria-hidden="true"
        />
      ))}
      {layout.labels.map((label) => (
        <g key={label.id} aria-hidden="true">
          <rect className="lblbg" x={label.x - 50} y={label.y - 9} width="100" height="18" />
          <text className="sub" x={label.x} y={label.y + 4} textAnchor="middle">
            {words.directLabel}
          </text>
        </g>
      ))}
      {layout.nodes.map((placed) => (
        <Node key={placed.node.id} placed={placed} />
      ))}
    </svg>
  )
}

/** Letters that fit into a node beside its glyph. */
const LETTERS = 0.146
const SMALL_LETTERS = 0.17

function cut(words: string, width: number, perPixel: number): string {
  const most = Math.floor((width - 44) * perPixel)
  return words.length > most ? `${words.slice(0, most - 1)}…` : words
}

const FRAME: Partial<Record<State, string>> = {
  blocked: 'node--stop',
  down: 'node--off',
  unknown: 'node--unknown',
}

function Node({ placed }: { placed: Placed }) {
  const { node, x, y, width, height } = placed
  const single = node.detail === ''
  const frame =
    node.id.startsWith('exception.') && node.state === 'direct' ? 'node--x' : (FRAME[node.state] ?? '')
  return (
    <Link to={node.to} search={node.search}>
      <title>{[node.name, node.detail].filter(Boolean).join(', ')}</title>
      <rect className={`node ${frame}`} x={x} y={y} width={width} height={height} rx="7" />
      <text x={x + 11.5} y={y + (single ? 24 : 16.5)}>
        {cut(node.name, width, LETTERS)}
      </text>
      {single ? null : (
        <text className="sub" x={x + 11.5} y={y + 31.5}>
          {cut(node.detail, width, SMALL_LETTERS)}
        </text>
      )}
      <use
        className={`c-${node.state}`}
        href={`#g-${node.state}`}
        x={x + width - 25}
        y={y + 12.5}
        width="14"
        height="14"
      />
    </Link>
  )
}

function wordOf(row: PolicyRow, flow: Flow, text: Text): string {
  if (row.edge === 'blocked') return text.overview.flow.blockedWord
  if (row.edge === 'direct') return text.overview.flow.directWord
  const used = row.hops.filter((hop) => hop.edge !== 'none').map((hop) => nameOf(hop.id, flow))
  return used.join(' + ') || text.overview.flow.through
}

function nameOf(hop: string, flow: Flow): string {
  return flow.hops.find((each) => each.id === hop)?.name ?? hop
}

const ORDER: Record<string, number> = { blocked: 0, direct: 1, none: 2, ok: 3 }

/** On small screens: what is blocked or direct first. */
function FlowList({ flow }: { flow: Flow }) {
  const text = useText()
  const rows = [...flow.rows].sort((one, other) => (ORDER[one.edge] ?? 9) - (ORDER[other.edge] ?? 9))
  return (
    <ul className="cards only-narrow" aria-label={text.overview.flow.title}>
      {rows.map((row) => (
        <li key={row.policy.id}>
          <div>
            <span className="med">
              <Link to={row.policy.to} search={row.policy.search}>
                {row.policy.name}
              </Link>{' '}
              <span className="dim sm">{row.source.name}</span>
            </span>
            <StateWord state={row.policy.state}>{wordOf(row, flow, text)}</StateWord>
          </div>
          <div>
            <Path joining="line">
              <HopChip state={row.source.state} name={row.source.name} />
              {row.hops.map((hop) => {
                const node = flow.hops.find((each) => each.id === hop.id)
                return <HopChip key={hop.id} state={node?.state ?? 'unknown'} name={node?.name ?? hop.id} />
              })}
              {row.direct ? <HopChip state="direct" name={row.direct} /> : null}
            </Path>
          </div>
          <span className="sm dim">{row.policy.detail}</span>
        </li>
      ))}
    </ul>
  )
}

function FlowTable({ flow }: { flow: Flow }) {
  const text = useText()
  const words = text.overview.flow
  return (
    <Table
      label={summaryOf(flow, text)}
      rows={flow.rows}
      id={(row) => row.policy.id}
      caption={flow.hidden > 0 ? words.hint(flow.hidden) : null}
      columns={[
        {
          head: words.policy,
          bare: true,
          cell: ({ policy }) => (
            <TwoLines second={policy.detail}>
              <Link className="med" to={policy.to} search={policy.search}>
                {policy.name}
              </Link>
            </TwoLines>
          ),
        },
        {
          head: words.devices,
          cell: ({ source }) => (
            <Link to={source.to} search={source.search}>
              {source.name}
            </Link>
          ),
        },
        {
          head: words.state,
          cell: (row) => <StateWord state={row.policy.state}>{wordOf(row, flow, text)}</StateWord>,
        },
        {
          head: words.hops,
          cell: (row) => (row.hops.length === 0 ? '-' : <HopNames row={row} flow={flow} />),
        },
        { head: words.uplink, cell: (row) => uplinksOf(row, flow).join(', ') || '-' },
        { head: words.rate, numeric: true, cell: ({ rate }) => (rate === null ? '-' : formatRate(rate)) },
      ]}
    />
  )
}

function HopNames({ row, flow }: { row: PolicyRow; flow: Flow }) {
  return row.hops.map((hop) => {
    const node = flow.hops.find((each) => each.id === hop.id)
    return (
      <span key={hop.id} className="nowrap">
        <Glyph state={node?.state ?? 'unknown'} /> {node?.name ?? hop.id}{' '}
      </span>
    )
  })
}

/** Names of the uplinks that the traffic of a policy leaves by. */
function uplinksOf(row: PolicyRow, flow: Flow): string[] {
  if (row.direct) return [row.direct]
  const used = row.hops.filter((hop) => hop.edge !== 'none')
  return [...new Set(used.map((hop) => flow.hops.find((each) => each.id === hop.id)?.uplink ?? '-'))]
}
