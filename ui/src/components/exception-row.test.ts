import { describe, expect, it } from 'vitest'
import type { Schemas } from '@/api/client'
import { prolonged } from './exception-row'

describe('prolonged', () => {
  const exception = { type: 'temporary-direct', device_id: 'd', remaining_sec: 601, targets: [] } as unknown
  it('adds to what is left', () => {
    expect(prolonged(exception as Schemas['Exception'], 30).duration_min).toBe(41)
  })
  it('stays within a day', () => {
    const long = { ...(exception as Schemas['Exception']), remaining_sec: 86_000 }
    expect(prolonged(long, 30).duration_min).toBe(1440)
  })
})
