// This gateway as a node of a mesh that another one coordinates.

import { type Schemas } from '@/api/client'
import { Facts } from '@/components/facts'
import { StateWord, type State } from '@/components/state'
import { useText } from '@/text'

type Status = Schemas['MeshStatus']

/** A gateway that is a node of a mesh observes the paths to its peers. */
export function isMember(status: Status): boolean {
  return status.peers.direct !== null
}

export function Membership({ status, states }: { status: Status; states: Record<Status['state'], State> }) {
  const text = useText().mesh
  const words = text.membership
  const { state, node, coordinator, derp, health } = status
  return (
    <Facts
      facts={[
        [
          text.state,
          <StateWord key="state" state={states[state]}>
            {words.states[state]}
          </StateWord>,
        ],
        [words.coordinator, coordinator.url, 'mono'],
        status.login_url !== null && [words.login, status.login_url, 'mono'],
        node !== null && [words.own, [node.name, ...node.ips].join(', '), 'mono'],
        [words.relay, derp.home ?? words.none],
        health.length > 0 && [
          text.faults,
          <span key="faults" lang="en">
            {health.join(' ')}
          </span>,
        ],
      ]}
    />
  )
}
