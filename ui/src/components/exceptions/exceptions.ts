// What exceptions do, and how one is made longer.

import type { Schemas } from '@/api/client'

export type Exception = Schemas['Exception']
export type ExceptionInput = Schemas['ExceptionInput']

/** Longest exception in minutes. */
export const LONGEST = 1440

export type Effect = 'cut' | 'direct' | 'some' | 'portal' | 'profile' | 'nothing'

/** Effect on the traffic of its device. */
export function effectOf({
  type,
  allow_direct,
  profile,
}: Pick<Exception, 'type' | 'allow_direct' | 'profile'>): Effect {
  if (type === 'quarantine') return 'cut'
  // Without this permission a bypass has no effect.
  if (!allow_direct) return 'nothing'
  if (profile) return 'profile'
  if (type === 'service-allowlist') return 'some'
  return type === 'captive-portal' ? 'portal' : 'direct'
}

/** Lets its device out in the clear. */
export function letsOut(exception: Pick<Exception, 'type' | 'allow_direct' | 'profile'>): boolean {
  return ['direct', 'some', 'portal'].includes(effectOf(exception))
}

/** The exception that takes the place of another one with that many minutes more. */
export function extending(exception: Exception, leftSeconds: number, minutes: number): ExceptionInput {
  const { type, device_id, allow_direct, reason, targets, profile } = exception
  const duration_min = Math.min(LONGEST, Math.max(1, Math.ceil(leftSeconds / 60)) + minutes)
  return { type, device_id, allow_direct, reason, targets, profile, duration_min } as ExceptionInput
}
