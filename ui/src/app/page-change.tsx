// What tells people which page they are on: the title of the window, and the focus on the heading of a new page.

import { useRouterState } from '@tanstack/react-router'
import { useEffect, useRef } from 'react'
import { entries } from '@/pages'
import { useText } from '@/text'
import { useCrumb } from '@/session/crumb'
import { addressOf, isCurrent } from '@/components/entries'
import { usePath } from '@/session/link'
import { useVerdict } from '@/components/verdict'

/** Time in which the heading of a page may appear, in milliseconds. */
const APPEARS = 10_000
/** What a person does while a page loads ends the search for its heading. */
const DEEDS = ['keydown', 'pointerdown'] as const

/** Titles the window with the page and the state, such as `Query log · OK · Gateway`. */
export function PageTitle() {
  const text = useText()
  const path = usePath()
  const detail = useCrumb()
  const { word } = useVerdict()
  const entry = entries.find((each) => isCurrent(each, path))
  const tab = entry?.tabs.find((each) => addressOf(entry, each) === path)
  const page = detail ?? (entry && tab && entry.tabs.length > 1 ? tab.label(text) : entry?.label(text))
  const title = [page ?? text.shell.notFound, word, text.shell.product].join(' · ')
  useEffect(() => {
    document.title = title
  }, [title])
  return null
}

/** Gives the focus to the heading of a page that was opened from another one. */
export function HeadingFocus() {
  // The address changes before the page does: until its parts are loaded, the page before is there.
  const path = useRouterState({ select: (state) => state.resolvedLocation?.pathname })
  const last = useRef(path)
  useEffect(() => {
    const before = last.current
    last.current = path
    if (before === undefined || before === path) return
    return focusHeading()
  }, [path])
  return null
}

function focusHeading(): () => void {
  const end = () => {
    observer.disconnect()
    window.clearTimeout(timer)
    for (const deed of DEEDS) document.removeEventListener(deed, end)
  }
  const look = () => {
    const main = document.getElementById('main')
    const heading = main?.querySelector('h1')
    if (!main || !heading) return
    end()
    // A form of the page that took the focus keeps it.
    if (main !== document.activeElement && main.contains(document.activeElement)) return
    if (document.querySelector('dialog[open]')) return
    heading.tabIndex = -1
    heading.focus({ preventScroll: true })
  }
  const observer = new MutationObserver(look)
  const timer = window.setTimeout(end, APPEARS)
  for (const deed of DEEDS) document.addEventListener(deed, end)
  observer.observe(document.body, { childList: true, subtree: true })
  look()
  return end
}
