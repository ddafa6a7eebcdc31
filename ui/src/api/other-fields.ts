// Errors of fields that the message of the error does not say already.

import type { ApiError } from './errors'

type Fields = ApiError['fields']

const words = (text: string) =>
  text
    .trim()
    .replace(/[.;:]+$/, '')
    .toLowerCase()

/** Returns each error of a field once, without those that the message repeats. */
export function otherFields(error: Pick<ApiError, 'message' | 'fields'>): Fields {
  const message = words(error.message)
  const seen = new Set<string>()
  return error.fields.filter(({ path, message: said }) => {
    const key = `${path} ${words(said)}`
    if (seen.has(key) || message.includes(words(said))) return false
    seen.add(key)
    return true
  })
}
