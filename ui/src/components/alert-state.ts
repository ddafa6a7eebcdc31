// The shape of an alert.

import type { State } from './state'

/** The shape of a kind of alert. Only a leak is red. */
export function alertState(kind: string): State {
  if (kind === 'leak_detected') return 'leak'
  if (kind === 'policy_blocked' || kind === 'device_quarantined') return 'blocked'
  if (kind === 'policy_fallback' || kind.startsWith('exception_')) return 'direct'
  if (kind.endsWith('_down') || kind.endsWith('_failed') || kind.endsWith('_unreachable')) return 'down'
  if (kind === 'new_device' || kind === 'key_created' || kind === 'device_offline') return 'idle'
  return 'degraded'
}
