import { expect, it, vi } from 'vitest'
import type { Schemas } from '@/api/client'
import { broker, mail, webhook } from './alert-receiver-forms'

/** The body of the request that saves these fields. */
async function sent(save: () => Promise<unknown>): Promise<unknown> {
  const bodies: unknown[] = []
  vi.stubGlobal('fetch', async (request: Request) => {
    if (request.method === 'PUT') bodies.push(await request.clone().json())
    return new Response('{"data":{}}', { headers: { 'Content-Type': 'application/json' } })
  })
  await save()
  vi.unstubAllGlobals()
  expect(bodies).toHaveLength(1)
  return bodies[0]
}

it('keeps the secrets of a receiver that are not typed', async () => {
  const stored = { ...webhook.fields(null), has_secret: true, has_token: true } as Schemas['AlertWebhook']
  const body = await sent(() => webhook.save({ ...webhook.fields(stored), token: 'new' }, stored, null))
  expect(body).toMatchObject({ token: 'new' })
  expect(body).not.toHaveProperty('secret')
})

it('removes a secret of a receiver by null', async () => {
  const hook = { ...webhook.fields(null), has_secret: true, has_token: true } as Schemas['AlertWebhook']
  const body = await sent(() => webhook.save({ ...webhook.fields(hook), secret: null }, hook, null))
  expect(body).toMatchObject({ secret: null })
  expect(body).not.toHaveProperty('token')
  const server = { ...mail.fields(null), has_password: true } as Schemas['AlertEmail']
  expect(await sent(() => mail.save({ ...mail.fields(server), password: null }, server, null))).toMatchObject(
    { password: null },
  )
  const one = { ...broker.fields(null), has_password: true } as Schemas['AlertMqtt']
  expect(await sent(() => broker.save({ ...broker.fields(one), password: null }, one, null))).toMatchObject({
    password: null,
  })
})
