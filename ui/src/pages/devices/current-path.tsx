// How a device leaves now, in a cell.

import { Link } from '@/session/link'
import { HopChip, Path } from '@/components/path'
import { StateWord } from '@/components/state'
import { decisionState, egressOf } from '@/components/why/evaluate'
import { DecisionWord } from '@/components/why/ladder'
import { useText } from '@/text'
import { policyOf } from './filters'
import type { DevicePath } from './use-paths'

interface Props {
  path: DevicePath | undefined
  /** The paths cannot be read, or are older than the last error. */
  failed: boolean
}

export function CurrentPath({ path, failed }: Props) {
  const text = useText()
  if (!path)
    return failed ? (
      <StateWord state="unknown">{text.common.noData}</StateWord>
    ) : (
      <span className="dim">-</span>
    )
  const names = path.egress.length > 1 ? path.egress : path.via ? [egressOf(path.via).name] : []
  const kind = path.egress.length > 1 || !path.via ? undefined : egressOf(path.via).kind
  const policy = policyOf(path)
  return (
    <div className={failed ? 'two stale' : 'two'} title={path.sentence}>
      {path.decision === 'tunnel' && names.length > 0 ? (
        <Path joining={names.length > 1 ? 'split' : 'line'}>
          {names.map((name) => (
            <HopChip key={name} state={decisionState(path.decision)} name={name} kind={kind} />
          ))}
        </Path>
      ) : (
        <DecisionWord decision={path.decision} />
      )}
      {policy ? (
        <small>
          <Link to="/devices" search={{ policy: policy.id }}>
            {path.exception ? text.exception.types[path.exception.type] : policy.name}
          </Link>
        </small>
      ) : (
        <small>{text.devices.noPolicy}</small>
      )}
    </div>
  )
}
