import type { SwaggerRequest } from 'swagger-ui-dist/swagger-ui-es-bundle.js'

const READS = ['GET', 'HEAD', 'OPTIONS']

/** Returns the token that changes with a session cookie need, if there is a session. */
async function csrfToken(): Promise<string | undefined> {
  const answer = await fetch('/api/v1/auth/status', { credentials: 'same-origin' })
  if (!answer.ok) return undefined
  const body = (await answer.json()) as { data: { csrf_token?: string | null } }
  return body.data.csrf_token ?? undefined
}

/** Adds the token to a request that "Try it out" sends with the session cookie of the dashboard. */
export async function withCsrfToken(request: SwaggerRequest): Promise<SwaggerRequest> {
  const reads = READS.includes((request.method ?? 'GET').toUpperCase())
  if (request.loadSpec === true || reads || request.headers?.['Authorization'] !== undefined) return request
  const token = await csrfToken()
  if (token === undefined) return request
  return { ...request, headers: { ...request.headers, 'X-CSRF-Token': token } }
}
