import { describe, expect, it } from 'vitest'
import type { Schemas } from '@/api/client'
import { lastHandshake, stateOf } from './tunnel-state'

const tunnel = (fields: Partial<Schemas['Tunnel']>) => ({
  enabled: true,
  admin_state: 'up' as const,
  status: 'up' as const,
  health: 'healthy' as const,
  ...fields,
})

describe('the state of a tunnel', () => {
  it('is up only if it is up and not unhealthy', () => {
    expect(stateOf(tunnel({}))).toEqual({ state: 'ok', word: 'up', usable: true })
    expect(stateOf(tunnel({ health: 'unhealthy' })).state).toBe('degraded')
  })

  it('is idle if it was taken down on purpose', () => {
    expect(stateOf(tunnel({ admin_state: 'down', status: 'down' }))).toMatchObject({
      state: 'idle',
      word: 'taken_down',
    })
  })

  it('is never good without an answer, or with a word that is not known', () => {
    expect(stateOf(tunnel({ status: undefined })).state).toBe('unknown')
    expect(stateOf(tunnel({ status: 'rekeying' as never }))).toEqual({
      state: 'unknown',
      word: 'rekeying',
      usable: false,
    })
  })
})

it('the last handshake is the latest of all peers', () => {
  const peer = (last_handshake: string | null) => ({ public_key: 'x', last_handshake }) as never
  expect(lastHandshake({ peers: [peer('2026-01-01T00:00:00Z'), peer('2026-01-02T00:00:00Z')] })).toBe(
    '2026-01-02T00:00:00Z',
  )
  expect(lastHandshake({ peers: [peer(null)] })).toBeNull()
})
