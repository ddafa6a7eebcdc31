import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { patiently } from './patience'

const refused = (seconds?: string) =>
  new Response('{}', { status: 429, headers: seconds === undefined ? {} : { 'Retry-After': seconds } })

function answering(...answers: Response[]) {
  const bodies: string[] = []
  const send = async (request: Request) => {
    bodies.push(await request.text())
    return answers[bodies.length - 1] ?? refused('1')
  }
  return { bodies, send }
}

const change = () => new Request('http://gateway/api', { method: 'POST', body: 'change' })

describe('patiently', () => {
  beforeEach(() => {
    vi.useFakeTimers()
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  it('sends a refused request again, with its body', async () => {
    const { bodies, send } = answering(refused('1'), new Response('done'))
    const answer = patiently(change(), send)
    await vi.advanceTimersByTimeAsync(1000)
    expect(await (await answer).text()).toBe('done')
    expect(bodies).toEqual(['change', 'change'])
  })

  it('shows a refusal that lasts', async () => {
    const { bodies, send } = answering()
    const answer = patiently(change(), send)
    await vi.advanceTimersByTimeAsync(10_000)
    expect((await answer).status).toBe(429)
    expect(bodies).toHaveLength(4)
  })

  it.each([['900'], [undefined]])('does not wait after %s', async (seconds) => {
    const { bodies, send } = answering(refused(seconds))
    expect((await patiently(change(), send)).status).toBe(429)
    expect(bodies).toHaveLength(1)
  })

  it('ends with the page that asked', async () => {
    const { send } = answering()
    const control = new AbortController()
    const answer = patiently(new Request('http://gateway/api', { signal: control.signal }), send)
    const failed = expect(answer).rejects.toThrow()
    await vi.advanceTimersByTimeAsync(100)
    control.abort()
    await failed
  })
})
