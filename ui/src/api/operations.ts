// What this version of the daemon supports.

import type { paths } from './schema'
import { supported } from './supported'

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'

/** An operation of the REST API: `GET /devices`. */
export type Operation = `${Method} ${keyof paths & string}`

/** Reports whether the daemon has an operation. Those that it answers with 501 it has not. */
export function isSupported(operation: Operation): boolean {
  return supported.has(operation)
}

/** Reports whether the daemon has a query parameter of an operation. Filters of collections are not listed. */
export function hasParameter(operation: Operation, parameter: string): boolean {
  return supported.has(`${operation}?${parameter}`)
}
