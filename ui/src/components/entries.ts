// An entry of the navigation with its tabs. A page registers itself by one entry in pages/index.ts.

import { createContext, useContext, type ComponentType } from 'react'
import type { IconName } from '@/components/icons'
import type { Text } from '@/text'
import { isSupported, type Operation } from '@/api/operations'
import { usePath } from '@/session/link'

type Lazy = () => Promise<{ default: ComponentType }>

export interface Tab {
  /** Path below that of the entry; the first tab has none. */
  path: string
  label: (text: Text) => string
  /** What the page reads. Without one of these operations the tab does not appear. */
  needs: Operation[]
  page: Lazy
  /** Hook that returns the number beside the label; undefined while it is not known. */
  useCount?: () => number | undefined
}

/** A page of one thing, with an address of its own: `/devices/$id`. */
export interface Detail {
  path: string
  page: Lazy
}

export interface Entry {
  path: string
  icon: IconName
  /** The key after `g`. */
  shortcut: string
  label: (text: Text) => string
  /** The question that the pages answer, in the words of the user. */
  question: (text: Text) => string
  tabs: Tab[]
  details?: Detail[]
  /** Things that the palette finds. */
  find?: () => Finding[]
}

/** A target of the palette. */
export interface Finding {
  label: string
  hint?: string
  to: string
}

/** Leaves out the tabs whose data the daemon does not have, and entries without tabs. */
export function available(entries: Entry[]): Entry[] {
  return entries
    .map((entry) => ({ ...entry, tabs: entry.tabs.filter((tab) => tab.needs.every(isSupported)) }))
    .filter((entry) => entry.tabs.length > 0)
}

/** The entries of the navigation. A page finds its own among them, so that it does not import what loads it. */
export const Entries = createContext<readonly Entry[]>([])

export function isCurrent(entry: Entry, path: string): boolean {
  return entry.path === '/' ? path === '/' : path === entry.path || path.startsWith(`${entry.path}/`)
}

/** The entry of the page that is shown. */
export function useEntry(): Entry | undefined {
  const path = usePath()
  return useContext(Entries).find((entry) => isCurrent(entry, path))
}

/** Address of a tab. */
export function addressOf(entry: Entry, tab: Tab): string {
  if (tab.path === '') return entry.path
  return entry.path === '/' ? `/${tab.path}` : `${entry.path}/${tab.path}`
}
