// Hooks that read and change resources through the REST API.

import { useMutation, useQuery, useQueryClient, type UseQueryResult } from '@tanstack/react-query'
import { type Answer, call, client } from './client'
import type { paths } from './schema'
import { live } from './live'

type Get<P extends keyof paths> = paths[P]['get']
type Success<O> = O extends { responses: { 200: { content: { 'application/json': infer B } } } } ? B : never

/** Paths whose GET answers with data. */
export type GetPath = {
  [P in keyof paths]: Success<Get<P>> extends { data: unknown } ? P : never
}[keyof paths]

export type Data<P extends GetPath> = Success<Get<P>> extends { data: infer D } ? D : never
type Parameters<P extends GetPath> = Get<P> extends { parameters: infer Q } ? Q : never
export type QueryOf<P extends GetPath> =
  Parameters<P> extends { query?: infer Q } ? Partial<NonNullable<Q>> : never
export type PathOf<P extends GetPath> = Parameters<P> extends { path: infer Q } ? Q : never

export interface ReadOptions {
  /** Pause between two reads in milliseconds while the page is visible. 15 seconds if not given, `false` for none. */
  every?: number | false
  enabled?: boolean
}

export interface Request<P extends GetPath> {
  query?: QueryOf<P>
  path?: PathOf<P>
}

/** Pause between two reads of data that no event announces, in milliseconds. */
export const SLOW = 15_000
/** Pause from which only a change of the store makes data be read before its time. */
const RARELY = 60_000

export function keyOf<P extends GetPath>(path: P, request: Request<P> = {}) {
  return [path, request.path ?? {}, request.query ?? {}] as const
}

export async function get<P extends GetPath>(
  path: P,
  request: Request<P> = {},
  signal?: AbortSignal,
): Promise<Answer<Data<P>>> {
  // The path is one of many, so the compiler cannot join its parameters with the types of the client.
  const fetchAny = client.GET as unknown as (
    path: string,
    init: unknown,
  ) => Promise<{ data?: { data: Data<P> }; error?: unknown; response: Response }>
  return (await call(fetchAny(path, { params: request, signal }))) as Answer<Data<P>>
}

/** Reads a resource and goes on reading it. An event of the daemon makes it read at once. */
export function useGet<P extends GetPath>(
  path: P,
  request: Request<P> = {},
  options: ReadOptions = {},
): UseQueryResult<Answer<Data<P>>> {
  return useQuery({
    queryKey: keyOf(path, request),
    queryFn: ({ signal }) => get(path, request, signal),
    refetchInterval: (query) => live.pause(options.every ?? SLOW, query.state.fetchFailureCount),
    enabled: options.enabled ?? true,
    // Large lists that are read rarely are read again when the store changes, not after each run of the daemon.
    meta: { costly: options.every === false || (options.every ?? SLOW) >= RARELY },
  })
}

/** A change. Afterwards everything that is shown is read again. */
export function useChange<I, A extends Answer<unknown>>(change: (input: I) => Promise<A>) {
  const queries = useQueryClient()
  return useMutation({
    mutationFn: change,
    // It is not waited for: what a change takes away would otherwise be gone before its caller hears of the result.
    onSettled: () => void queries.invalidateQueries(),
  })
}
