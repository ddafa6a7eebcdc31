// Policies that are deleted and steer traffic until the next apply.

import { Tag } from '@/components/state'
import { useText } from '@/text'
import { usePending } from './data'

export function RemovedPolicies() {
  const text = useText()
  const removed = usePending()?.filter((each) => each.kind === 'removed' && each.applied) ?? []
  if (removed.length === 0) return null
  return (
    <ul className="removed">
      {removed.map((each) => (
        <li key={each.id}>
          <span className="med">{each.name}</span> <Tag kind="pending">{text.policies.removed}</Tag>{' '}
          <span className="dim">{each.applied?.matches.join(', ')}</span>
        </li>
      ))}
    </ul>
  )
}
