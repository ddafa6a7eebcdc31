// Everything that the log has of a flow, why it took each of its paths, and what can be done about the next one.

import { useState } from 'react'
import { Facts } from '@/components/facts'
import { LinkButton } from '@/components/link-button'
import { StateWord } from '@/components/state'
import { Table } from '@/components/table'
import { Clock } from '@/components/time'
import { WhyPanel } from '@/components/why/why-panel'
import { useText } from '@/text'
import { formatBytes, formatNumber, formatTime } from '@/text/format'
import { endOf } from '../packets'
import { egressName, portOf, stateOf } from './flow-columns'
import { nameOf, packetAt, type Flow } from './flow-list'

export function FlowDetail({ flow }: { flow: Flow }) {
  const words = useText().flows
  const [chosen, setChosen] = useState<string | null>(null)
  const path = flow.paths.find(({ at }) => at === chosen) ?? flow.paths.at(-1)
  const packet = path && packetAt(flow, path)
  return (
    <div className="log__detail">
      <Deeds flow={flow} />
      <FlowFacts flow={flow} />
      <Paths flow={flow} chosen={path?.at} onChoose={setChosen} />
      {packet && flow.client ? (
        <>
          <h3>{words.whyThen(formatTime(packet.at ?? '', 'long'))}</h3>
          <WhyPanel
            key={packet.at}
            device={{ id: packet.device_id, name: flow.client.device ?? flow.client.ip }}
            query={packet}
          />
        </>
      ) : (
        <p className="quiet">{flow.client ? words.noDevice : words.noClient}</p>
      )}
    </div>
  )
}

/** To block, to route and to allow: each opens its form with what is known of the flow. */
function Deeds({ flow }: { flow: Flow }) {
  const words = useText().flows
  const name = nameOf(flow)
  const target = name ?? flow.destination
  const policy = { source: name ? 'domain' : 'destination', value: target }
  const device = flow.client?.device_id
  return (
    <div className="btns">
      <LinkButton
        size="small"
        icon="lock"
        needs="operator"
        to="/policies/new"
        search={{ ...policy, name: words.blockName(target) }}
      >
        {words.block(target)}
      </LinkButton>
      <LinkButton
        size="small"
        icon="paths"
        needs="operator"
        to="/policies/new"
        search={{ ...policy, name: words.routeName(target) }}
      >
        {words.route(target)}
      </LinkButton>
      {device ? (
        <LinkButton
          size="small"
          icon="clock"
          needs="operator"
          to="/policies/exceptions"
          search={{ new: '1', device, type: 'service-allowlist', targets: target }}
        >
          {words.allow(target)}
        </LinkButton>
      ) : null}
    </div>
  )
}

function FlowFacts({ flow }: { flow: Flow }) {
  const words = useText().flows
  const { facts } = words
  const { client, sent, received } = flow
  const traffic = (counted: Flow['sent']) =>
    counted ? words.counted(formatNumber(counted.packets), formatBytes(counted.bytes)) : words.uncounted
  return (
    <Facts
      className="kv"
      facts={[
        [
          facts.client,
          client ? endOf(client.ip, portOf(flow) === null ? null : client.port) : words.anonymous,
          'mono',
        ],
        client && [
          facts.interface,
          [client.interface, client.vlan || null, client.mac].filter(Boolean).join(', '),
        ],
        [facts.country, flow.country],
        [facts.names, flow.names.join(', ')],
        [facts.serverName, flow.server_name],
        [facts.sent, traffic(sent)],
        [facts.received, traffic(received)],
        [facts.last, flow.last_at && <Clock key="last" time={flow.last_at} seconds />],
        [facts.ended, flow.ended_at && <Clock key="ended" time={flow.ended_at} seconds />],
        [facts.end, flow.end && words.ends[flow.end]],
        [facts.id, flow.part > 0 ? `${flow.flow_id}, ${words.part(flow.part + 1)}` : flow.flow_id, 'mono'],
      ]}
    />
  )
}

interface PathsProps {
  flow: Flow
  chosen: string | undefined
  onChoose: (at: string) => void
}

function Paths({ flow, chosen, onChoose }: PathsProps) {
  const text = useText()
  const words = text.flows
  const { paths } = words
  return (
    <Table
      label={paths.title}
      rows={flow.paths}
      id={(path) => path.at}
      dense
      columns={[
        { head: paths.at, cell: (path) => <Clock time={path.at} seconds /> },
        {
          head: paths.decision,
          cell: (path) => <StateWord state={stateOf(path)}>{words.verdicts[path.verdict]}</StateWord>,
        },
        { head: paths.reason, cell: (path) => <code>{path.reason}</code> },
        { head: paths.policy, cell: (path) => (path.policy ? (path.policy.name ?? words.deleted) : '-') },
        { head: paths.hops, cell: (path) => path.hops.join(', ') || '-' },
        { head: paths.egress, cell: (path) => (path.egress ? egressName(path.egress, text) : '-') },
        { head: paths.generation, numeric: true, cell: (path) => formatNumber(path.generation) },
        flow.paths.length > 1 && {
          numeric: true,
          cell: (path) => (
            <button
              type="button"
              className="link"
              aria-pressed={path.at === chosen}
              onClick={() => onChoose(path.at)}
            >
              {words.why}
            </button>
          ),
        },
      ]}
    />
  )
}
