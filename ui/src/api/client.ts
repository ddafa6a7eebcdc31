// The client of the REST API. Its types are generated from the OpenAPI document.

import createClient, { type Middleware } from 'openapi-fetch'
import { ApiError, readError, Unreachable } from './errors'
import { patiently } from './patience'
import { session } from './session'
import { whileWaiting } from './waiting'
import type { components, paths } from './schema'

export type Schemas = components['schemas']

const revalidate = answersByEtag()

/** Longest wait for the answer to a read, in milliseconds. */
const LONGEST_READ = 15_000

/** A request that fails because the session has ended waits for a new sign-in and is sent again. */
async function send(request: Request): Promise<Response> {
  const again = request.clone()
  const answer = patiently(request, once)
  const response = await (request.method === 'GET' ? answer : whileWaiting(answer))
  if (response.status !== 401 || request.url.includes('/api/v1/auth/')) return response
  await session.signedInAgain()
  const headers = new Headers(again.headers)
  if (session.csrf) headers.set('X-CSRF-Token', session.csrf)
  return patiently(new Request(again, { headers }), fetch)
}

async function once(request: Request): Promise<Response> {
  // A change may take its time; a read that is not answered soon is not answered at all.
  const limit = request.method === 'GET' ? AbortSignal.timeout(LONGEST_READ) : null
  try {
    return await fetch(request, limit ? { signal: AbortSignal.any([request.signal, limit]) } : {})
  } catch (error) {
    if (request.signal.aborted) throw error
    throw new Unreachable()
  }
}

const middleware: Middleware = {
  onRequest({ request }) {
    if (request.method !== 'GET' && session.csrf) request.headers.set('X-CSRF-Token', session.csrf)
    return revalidate.ask(request)
  },
  onResponse({ request, response }) {
    return revalidate.answer(request, response)
  },
}

export const client = createClient<paths>({ baseUrl: `${location.origin}/api/v1`, fetch: send })
client.use(middleware)

/** An answer in the envelope of the API. */
export interface Answer<T> {
  data: T
  warnings: Schemas['Warning'][]
  etag: string | null
  headers: Headers
}

interface Fetched {
  data?: unknown
  error?: unknown
  response: Response
}

type Enveloped<R> = R extends { data: infer B } ? (B extends { data: infer D } ? D : undefined) : never

/** Waits for a request and returns its data. An error of the API is thrown as [`ApiError`]. */
export async function call<R extends Fetched>(request: Promise<R>): Promise<Answer<Enveloped<R>>> {
  const { data, error, response } = await request
  if (error !== undefined || !response.ok) throw readError(response, error)
  const body = (data ?? {}) as { data?: unknown; warnings?: Schemas['Warning'][] }
  return {
    data: body.data as Enveloped<R>,
    warnings: body.warnings ?? [],
    etag: response.headers.get('ETag'),
    headers: response.headers,
  }
}

export { ApiError }

/** Keeps the last answer of each address with its entity tag, so that an unchanged one is not sent again. */
function answersByEtag() {
  const known = new Map<string, { etag: string; body: string; headers: Headers }>()
  const MOST = 200
  return {
    ask(request: Request) {
      const last = request.method === 'GET' ? known.get(request.url) : undefined
      if (last) request.headers.set('If-None-Match', last.etag)
      return request
    },
    async answer(request: Request, response: Response) {
      if (request.method !== 'GET') return undefined
      const last = known.get(request.url)
      if (response.status === 304 && last)
        return new Response(last.body, { status: 200, headers: last.headers })
      const etag = response.headers.get('ETag')
      if (response.status === 200 && etag && response.headers.get('Content-Type')?.includes('json')) {
        known.delete(request.url)
        if (known.size >= MOST) known.delete(known.keys().next().value ?? '')
        known.set(request.url, { etag, body: await response.clone().text(), headers: response.headers })
      }
      return undefined
    },
  }
}
