import { afterEach, expect, it, vi } from 'vitest'
import { withCsrfToken } from './csrf'

function sessionWith(token: string | null) {
  const answer = Response.json({ data: { csrf_token: token } })
  const fetched = vi.fn(() => Promise.resolve(answer))
  vi.stubGlobal('fetch', fetched)
  return fetched
}

afterEach(() => vi.unstubAllGlobals())

it('adds the token of the session to a change', async () => {
  sessionWith('abc')
  const sent = await withCsrfToken({ url: '/api/v1/apply', method: 'post', headers: { Accept: '*/*' } })
  expect(sent.headers).toEqual({ Accept: '*/*', 'X-CSRF-Token': 'abc' })
})

it('leaves reads, keys and callers without a session alone', async () => {
  const fetched = sessionWith(null)
  for (const request of [
    { url: '/api/v1/openapi.json', loadSpec: true },
    { url: '/api/v1/devices', method: 'GET' },
    { url: '/api/v1/apply', method: 'POST', headers: { Authorization: 'Bearer k' } },
  ]) {
    expect(await withCsrfToken(request)).toBe(request)
  }
  expect(fetched).not.toHaveBeenCalled()
  const change = { url: '/api/v1/apply', method: 'POST' }
  expect(await withCsrfToken(change)).toBe(change)
})
