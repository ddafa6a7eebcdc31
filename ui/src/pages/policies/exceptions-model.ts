// What exceptions do, and how one is made longer.

import type { Schemas } from '@/api/client'

export type Exception = Schemas['Exception']
export type ExceptionInput = Schemas['ExceptionInput']

/** Longest exception in minutes. */
export const LONGEST = 1440

/** Lets its device out in the clear. */
export function letsOut(exception: Pick<Exception, 'type' | 'allow_direct'>): boolean {
  return exception.type !== 'quarantine' && exception.allow_direct
}

/** The exception that takes the place of another one with that many minutes more. */
export function extending(exception: Exception, leftSeconds: number, minutes: number): ExceptionInput {
  const { type, device_id, allow_direct, reason, targets, profile } = exception
  const duration_min = Math.min(LONGEST, Math.max(1, Math.ceil(leftSeconds / 60)) + minutes)
  return { type, device_id, allow_direct, reason, targets, profile, duration_min } as ExceptionInput
}

/** The lines of a text field without empty ones. */
export function linesOf(written: string): string[] {
  return written
    .split(/[\n,]/)
    .map((line) => line.trim())
    .filter(Boolean)
}
