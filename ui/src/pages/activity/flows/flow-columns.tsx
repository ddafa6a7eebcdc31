// The columns of the list of flows.

import type { Column } from '@/components/table'
import { StateWord, type State } from '@/components/state'
import { Clock } from '@/components/time'
import { TwoLines } from '@/components/two-lines'
import { Link } from '@/session/link'
import type { Text } from '@/text'
import { formatBytes, formatNumber } from '@/text/format'
import { endOf } from '../packets'
import { nameOf, packetAt, type Flow } from './flow-list'

export function columnsOf(text: Text): Column<Flow>[] {
  const words = text.flows
  const { columns } = words
  return [
    {
      head: columns.started,
      className: 'nowrap',
      cell: (flow) => (
        <TwoLines second={flow.active ? words.states.active : flow.end ? words.ends[flow.end] : null}>
          <Clock time={flow.started_at} seconds />
        </TwoLines>
      ),
    },
    { head: columns.device, cell: ({ client }) => <ClientOf client={client} anonymous={words.anonymous} /> },
    {
      head: columns.destination,
      className: 'wrap',
      cell: (flow) => (
        <TwoLines second={`${endOf(flow.destination, portOf(flow))} ${flow.protocol}`}>
          {nameOf(flow) ?? flow.destination}
        </TwoLines>
      ),
    },
    {
      head: columns.path,
      cell: (flow) => (
        <TwoLines second={flow.policy ? (flow.policy.name ?? words.deleted) : null}>
          <StateWord state={stateOf(flow)}>
            {flow.verdict === 'permitted' ? egressName(flow.egress, text) : words.verdicts[flow.verdict]}
          </StateWord>
        </TwoLines>
      ),
    },
    {
      head: columns.bytes,
      numeric: true,
      cell: ({ sent, received }) => (
        <TwoLines second={sent ? `↑ ${formatBytes(sent.bytes)}` : null}>
          {received ? `↓ ${formatBytes(received.bytes)}` : sent ? null : words.uncounted}
        </TwoLines>
      ),
    },
    {
      head: columns.changes,
      numeric: true,
      wide: true,
      cell: ({ path_changes: changes }) => formatNumber(changes),
    },
    {
      head: <span className="sr">{text.common.actions}</span>,
      numeric: true,
      cell: (flow) => <Why flow={flow} word={words.why} />,
    },
  ]
}

/** A link to the answer as of then, on the page of the device. */
function Why({ flow, word }: { flow: Flow; word: string }) {
  const path = flow.paths.at(-1)
  const packet = path && packetAt(flow, path)
  if (!packet) return null
  const { device_id: device, destination, port, protocol, at } = packet
  return (
    <Link className="link" to={`/devices/${device}`} search={{ to: destination, port, protocol, at }}>
      {word}
    </Link>
  )
}

function ClientOf({ client, anonymous }: { client: Flow['client']; anonymous: string }) {
  if (!client) return <span className="dim">{anonymous}</span>
  const { device, device_id: id, ip, mac } = client
  return (
    <TwoLines second={device ? ip : mac}>
      {id && device ? <Link to={`/devices/${id}`}>{device}</Link> : ip}
    </TwoLines>
  )
}

/** ICMP has no ports. */
export const portOf = ({ protocol, destination_port: port }: Flow) =>
  protocol.startsWith('icmp') ? null : port

export const egressName = (egress: string | null, text: Text) =>
  egress === 'auto' ? text.dns.log.defaultRoute : (egress ?? text.flows.local)

export function stateOf({ verdict, policy, egress }: Pick<Flow, 'verdict' | 'policy' | 'egress'>): State {
  if (verdict !== 'permitted') return 'blocked'
  if (egress === null) return 'idle'
  return policy && egress !== 'auto' ? 'ok' : 'direct'
}
