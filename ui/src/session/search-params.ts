// Filters of a page that stand in its address, so that a link shows the same.

import { useLocation, useNavigate } from '@tanstack/react-router'
import { useCallback } from 'react'

export type Search = Record<string, string | undefined>

/** Reads the filters of an address. All values are texts, so that `port=53` stays as it was written. */
export function parseSearch(search: string): Record<string, string> {
  return Object.fromEntries(new URLSearchParams(search))
}

/** Writes filters into an address. */
export function stringifySearch(search: Record<string, unknown>): string {
  const written = new URLSearchParams(
    Object.entries(search).flatMap(([name, value]) =>
      value === undefined || value === null || value === '' ? [] : [[name, String(value)]],
    ),
  ).toString()
  return written ? `?${written}` : ''
}

/** Returns the filters, and a function that changes some of them. An empty one leaves the address. */
export function useSearchParams(): [Search, (change: Search) => void] {
  const search: Record<string, unknown> = useLocation().search
  const navigate = useNavigate()
  const change = useCallback(
    (next: Search) =>
      void navigate({
        to: '.' as never,
        replace: true,
        search: ((before: Record<string, unknown>) => {
          const merged: Record<string, unknown> = { ...before, ...next }
          return Object.fromEntries(
            Object.entries(merged).filter(([, value]) => value !== undefined && value !== ''),
          )
        }) as never,
      }),
    [navigate],
  )
  const texts = Object.fromEntries(
    Object.entries(search).map(([name, value]) => [name, value === undefined ? undefined : String(value)]),
  )
  return [texts, change]
}
