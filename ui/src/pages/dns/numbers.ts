// Numbers that may be missing. None is never shown as zero.

import { formatNumber } from '@/text/format'

export function numberOf(value: number | null | undefined, digits = 0): string {
  return value === null || value === undefined ? '-' : formatNumber(value, digits)
}
