// The hops of a policy in a line, each with its state.

import { Fragment, createElement, type ReactNode } from 'react'
import { HopChip, Path } from '@/components/path'
import { TwoLines } from '@/components/two-lines'
import { useText } from '@/text'
import { useChains, useHopState, useProfiles } from './data'
import { JOINING, hopUse, type Hop, type Policy } from './model'

/** A sentence of words and links. */
export function Parts({ parts }: { parts: ReactNode[] }) {
  return createElement(Fragment, null, ...parts)
}

export function Hops({ way }: { way: { hops: readonly Hop[]; splitting?: boolean; hop_mode?: string } }) {
  const text = useText()
  const stateOf = useHopState()
  return (
    <Path joining={JOINING[hopUse(way)]}>
      {way.hops.map((hop, at) => {
        const { state, reason } = stateOf(hop)
        return (
          <span key={`${hop.type} ${hop.target} ${at}`} title={reason || text.policies.hopTypes[hop.type]}>
            <HopChip state={state} name={hop.target} />
          </span>
        )
      })}
    </Path>
  )
}

/** The hops that a policy uses, its own or those of its profile or chain; what follows if there are none. */
export function PolicyHops({ policy }: { policy: Policy }) {
  const text = useText()
  const profiles = useProfiles().data?.data
  const chains = useChains().data?.data
  const way = policy.effective ?? policy
  const from = policy.chain
    ? text.policies.chainHops(nameIn(chains, policy.chain))
    : policy.profile && policy.hops.length === 0
      ? text.policies.profileHops(nameIn(profiles, policy.profile))
      : null
  return (
    <TwoLines second={from}>
      {way.hops.length > 0 ? (
        <Hops way={way} />
      ) : (
        <span className="dim">
          {way.fail_policy === 'fail-open' ? text.policies.noHopsOpen : text.policies.noHopsClosed}
        </span>
      )}
    </TwoLines>
  )
}

export function nameIn(list: readonly { id: string; name: string }[] | undefined, idOrName: string): string {
  return list?.find((each) => each.id === idOrName)?.name ?? idOrName
}
