// Keys: `g` and a letter go to an entry, `?` lists all. Keys without a modifier can be turned off (WCAG 2.1.4).

import { useEffect, useRef, useState } from 'react'
import { entries } from '@/pages'
import { Check } from '@/components/fields'
import { Dialog } from '@/components/dialog'
import { useText } from '@/text'
import { useGo } from '@/session/link'

const STORED = 'gateway.shortcuts'
/** Time in milliseconds within which the second key of two must come. */
const BETWEEN = 1500

/** Reports whether a key that was pressed is a shortcut: they are on, and no text is being written. */
export function shortcutsOn(event: KeyboardEvent): boolean {
  if (localStorage.getItem(STORED) === 'off' || event.ctrlKey || event.metaKey || event.altKey) return false
  const target = event.target as HTMLElement
  return !target.closest('input, textarea, select, [contenteditable], dialog, [role="menu"]')
}

export function Shortcuts() {
  const text = useText()
  const go = useGo()
  const [help, setHelp] = useState(false)
  const [on, setOn] = useState(localStorage.getItem(STORED) !== 'off')
  const since = useRef(0)
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (!shortcutsOn(event)) return
      if (event.key === '?') setHelp(true)
      else if (event.key === 'g') since.current = Date.now()
      else {
        const entry = entries.find((each) => each.shortcut === event.key)
        if (entry && Date.now() - since.current < BETWEEN) go(entry.path)
        since.current = 0
        if (event.key === 'j' || event.key === 'k') moveRow(event.key === 'j' ? 1 : -1)
      }
    }
    document.addEventListener('keydown', press)
    return () => document.removeEventListener('keydown', press)
  }, [go])
  return (
    <Dialog open={help} onClose={() => setHelp(false)} title={text.shell.keys.title}>
      <dl className="facts">
        {entries.map((entry) => (
          <div className="facts__row" key={entry.path}>
            <dt>
              <kbd>g</kbd> <kbd>{entry.shortcut}</kbd>
            </dt>
            <dd>{entry.label(text)}</dd>
          </div>
        ))}
        {text.shell.keys.list.map(([keys, what]) => (
          <div className="facts__row" key={keys}>
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <Check
        label={text.shell.keys.single}
        checked={on}
        onChange={(checked) => {
          localStorage.setItem(STORED, checked ? 'on' : 'off')
          setOn(checked)
        }}
      />
    </Dialog>
  )
}

/** Moves the focus to the next or last row of the table that has the focus, else of the first one. */
function moveRow(by: number) {
  const rows = [...document.querySelectorAll<HTMLElement>('main tr[tabindex], main [data-row]')]
  if (rows.length === 0) return
  const at = rows.indexOf(document.activeElement as HTMLElement)
  rows[Math.min(rows.length - 1, Math.max(0, at + by))]?.focus()
}
