// How a device leaves now, in a cell.

import { useRef } from 'react'
import { HopChip, Path } from '@/components/path'
import { StateWord } from '@/components/state'
import { decisionState, egressOf } from '@/components/why/evaluate'
import { DecisionWord } from '@/components/why/ladder'
import { useText } from '@/text'
import { useInView, usePath } from './use-paths'

export function CurrentPath({ id }: { id: string }) {
  const text = useText()
  const element = useRef<HTMLDivElement>(null)
  const path = usePath(id, useInView(element))
  const evaluation = path.data?.data
  const family = evaluation?.families.ipv4 ?? evaluation?.families.ipv6
  const policy = evaluation?.effective.policy
  return (
    <div ref={element} className="two" title={evaluation?.sentence}>
      {evaluation ? (
        family?.via && evaluation.decision === 'tunnel' ? (
          <Path joining="line">
            <HopChip state={decisionState(evaluation.decision)} {...egressOf(family.via)} />
          </Path>
        ) : (
          <DecisionWord decision={evaluation.decision} />
        )
      ) : path.error ? (
        <StateWord state="unknown">{text.common.noData}</StateWord>
      ) : (
        <span className="dim">-</span>
      )}
      {policy ? <small>{policy.name}</small> : null}
    </div>
  )
}
