// The name of the thing that a detail page shows, for the breadcrumb and the title of the window.

import { useEffect, useSyncExternalStore } from 'react'

let name: string | undefined
const listeners = new Set<() => void>()

function set(changed: string | undefined) {
  name = changed
  for (const listener of listeners) listener()
}

export function useCrumb(): string | undefined {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    () => name,
  )
}

/** Names the thing that this page shows while the page is there. */
export function useTitle(title: string | undefined) {
  useEffect(() => {
    set(title)
    return () => set(undefined)
  }, [title])
}
