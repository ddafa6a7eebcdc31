// What a button does: it sends a change, says what followed, and keeps the error.

import { ApiError, type Answer } from '@/api/client'
import { useChange } from '@/api/query'
import { say, sayError } from '@/session/toasts'

export interface Action<I = void> {
  busy: boolean
  error: Error | null
  /** What is wrong with a field. */
  of: (path: string) => string | undefined
  run: (input: I) => void
  /** Forgets the error. */
  reset: () => void
}

/** Does what follows a change, and returns the sentence that is said about it, if there is one. */
type Done<T, I> = (data: T, input: I) => unknown

/** A change whose error is said like its success. */
export function useAction<T, I = void>(send: (input: I) => Promise<Answer<T>>, done: Done<T, I>): Action<I> {
  return useSent(send, done, sayError)
}

/** A change whose error the form or the question shows. */
export function useFormAction<T, I = void>(
  send: (input: I) => Promise<Answer<T>>,
  done: Done<T, I>,
): Action<I> {
  return useSent(send, done)
}

function useSent<T, I>(
  send: (input: I) => Promise<Answer<T>>,
  done: Done<T, I>,
  onError?: (error: Error) => void,
): Action<I> {
  const change = useChange(send)
  const { error } = change
  return {
    busy: change.isPending,
    error,
    of: (path) => (error instanceof ApiError ? error.of(path) : undefined),
    run: (input) =>
      change.mutate(input, {
        onSuccess: ({ data, warnings }, sent) => {
          const said = done(data, sent)
          if (typeof said === 'string') say(said, warnings)
        },
        onError,
      }),
    reset: change.reset,
  }
}
