// An apply that makes a snapshot, and undoes itself unless it is confirmed.

import { call, client } from '@/api/client'
import { useChange } from '@/api/query'

/** Time in seconds after which a change undoes itself. */
const UNDO_AFTER = 90

export function useSafeApply(undo: boolean) {
  return useChange(() =>
    call(
      client.POST('/apply', {
        body: {
          resources: {},
          dry_run: false,
          mode: 'merge',
          force: false,
          confirm_timeout_sec: undo ? UNDO_AFTER : 0,
        },
      }),
    ),
  )
}
