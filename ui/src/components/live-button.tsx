// Shows what is new as it comes, or holds what is shown.

import { useSearchParams } from '@/session/search-params'
import { useText } from '@/text'

interface Props {
  live: boolean
  /** Why nothing new can come. */
  why?: string
}

export function LiveButton({ live, why }: Props) {
  const { log } = useText().dns
  const [, change] = useSearchParams()
  return (
    <button
      type="button"
      className="live"
      aria-pressed={live}
      disabled={why !== undefined}
      title={why}
      onClick={() => change({ live: live ? 'off' : undefined })}
    >
      <i aria-hidden="true" />
      {live ? log.live : log.frozen}
    </button>
  )
}
