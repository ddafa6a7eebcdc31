// Hosts that the overview leaves out, in this browser.

import { useSyncExternalStore } from 'react'

const STORED = 'gateway.hidden-hosts'
/** Hosts that are kept; the oldest is forgotten first. */
const MOST = 500

const listeners = new Set<() => void>()
let hidden: ReadonlySet<string> | null = null

function read(): ReadonlySet<string> {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(STORED) ?? '[]')
    return new Set(Array.isArray(stored) ? stored.filter((id) => typeof id === 'string') : [])
  } catch {
    return new Set()
  }
}

function current(): ReadonlySet<string> {
  return (hidden ??= read())
}

function subscribe(listener: () => void) {
  // Another tab may have hidden one.
  const changed = ({ key }: StorageEvent) => {
    if (key !== STORED) return
    hidden = null
    listener()
  }
  listeners.add(listener)
  window.addEventListener('storage', changed)
  return () => {
    listeners.delete(listener)
    window.removeEventListener('storage', changed)
  }
}

export function useHidden(): ReadonlySet<string> {
  return useSyncExternalStore(subscribe, current)
}

export function setHidden(id: string, on: boolean) {
  const kept = [...current()].filter((each) => each !== id)
  hidden = new Set((on ? [...kept, id] : kept).slice(-MOST))
  localStorage.setItem(STORED, JSON.stringify([...hidden]))
  for (const listener of listeners) listener()
}

/** Shows all hosts again. */
export function showAll() {
  hidden = new Set()
  localStorage.removeItem(STORED)
  for (const listener of listeners) listener()
}
