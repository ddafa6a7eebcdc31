// How many of the hosts are covered by a policy, a block or an exception, while others leave directly without one.

import type { Schemas } from '@/api/client'
import { Link } from '@/session/link'
import { useText } from '@/text'

export function Coverage({ share }: { share: Schemas['Share'] }) {
  const text = useText()
  const { covered, total } = share
  const label = text.hosts.share.bar(covered, total)
  return (
    <div className="coverage">
      <svg className="share" viewBox="0 0 100 6" preserveAspectRatio="none" role="img" aria-label={label}>
        <rect className="share__part--direct" width="100" height="6" />
        <rect className="share__part--ok" width={(100 * covered) / Math.max(1, total)} height="6" />
      </svg>
      <span className="sm mid">
        {label}.{' '}
        <Link to="/devices/hosts" search={{ decision: 'no_policy' }}>
          {text.hosts.share.show(total - covered)}
        </Link>
      </span>
    </div>
  )
}
