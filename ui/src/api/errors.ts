// Errors of the REST API.

import type { components } from './schema'

export interface FieldProblem {
  path: string
  message: string
}

/** An error that the daemon answered. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly fields: FieldProblem[],
    readonly requestId: string | null,
    readonly details: Record<string, unknown>,
  ) {
    super(message)
    this.name = 'ApiError'
  }

  /** Message of a field, or of an entry of a list, by its path. */
  of(path: string): string | undefined {
    const found = this.fields.find((field) => field.path === path || field.path.startsWith(`${path}[`))
    return found?.message
  }
}

/** The daemon did not answer. */
export class Unreachable extends Error {
  constructor() {
    super('unreachable')
    this.name = 'Unreachable'
  }
}

type Envelope = components['schemas']['Error']

export function readError(response: Response, body: unknown): ApiError {
  const error = (body as Partial<Envelope> | undefined)?.error
  const details = (error?.details ?? {}) as Record<string, unknown>
  const fields = Array.isArray(details.fields) ? (details.fields as FieldProblem[]) : []
  return new ApiError(
    response.status,
    error?.code ?? 'internal',
    error?.message ?? response.statusText,
    fields,
    response.headers.get('X-Request-Id'),
    details,
  )
}
