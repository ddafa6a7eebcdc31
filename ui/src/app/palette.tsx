// The palette: pages, actions, devices, policies, tunnels and settings by name.

import { useEffect, useMemo, useRef, useState, type KeyboardEvent } from 'react'
import { entries } from '@/pages'
import { keysOf } from '@/pages/system/settings-tree'
import { useGet } from '@/api/query'
import { Dialog } from '@/components/dialog'
import { Icon } from '@/components/icons'
import { useText } from '@/text'
import { addressOf, type Finding } from '@/components/entries'
import { useGo } from '@/session/link'
import { shortcutsOn } from './shortcuts'

/** Actions, and the page with the form or the setting of each. */
const ACTIONS = [
  ['addDevice', '/devices/new'],
  ['newPolicy', '/policies/new'],
  ['newException', '/policies/exceptions?new=1'],
  ['importTunnel', '/paths/tunnels/import'],
  ['pauseBlocking', '/system/settings?find=dns.blocking_paused_until&key=dns.blocking_paused_until'],
  ['leakCheck', '/dns/privacy'],
  ['editUplinks', '/network/uplinks/edit'],
  ['newReservation', '/network/dhcp/new'],
  ['export', '/system/backups'],
] as const

/** Findings that are shown at once. */
const MOST = 30

interface Props {
  open: boolean
  onOpen: (open: boolean) => void
}

export function Palette({ open, onOpen }: Props) {
  const text = useText()
  useEffect(() => {
    const press = (event: globalThis.KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k') {
        event.preventDefault()
        onOpen(true)
      }
      if (event.key === '/' && shortcutsOn(event)) {
        const filter = document.querySelector<HTMLInputElement>('[data-filter]')
        if (filter) {
          event.preventDefault()
          filter.focus()
        }
      }
    }
    document.addEventListener('keydown', press)
    return () => document.removeEventListener('keydown', press)
  }, [onOpen])
  return (
    <Dialog open={open} onClose={() => onOpen(false)} title={text.shell.find}>
      <Finder onDone={() => onOpen(false)} />
    </Dialog>
  )
}

function Finder({ onDone }: { onDone: () => void }) {
  const text = useText()
  const go = useGo()
  const input = useRef<HTMLInputElement>(null)
  const [typed, setTyped] = useState('')
  const [chosen, setChosen] = useState(0)
  const findings = useFindings(typed)
  useEffect(() => input.current?.focus(), [])
  const open = (finding: Finding | undefined) => {
    if (!finding) return
    onDone()
    const [path, search] = finding.to.split('?')
    go(path ?? '/', Object.fromEntries(new URLSearchParams(search)))
  }
  const press = (event: KeyboardEvent) => {
    if (event.key === 'ArrowDown') setChosen(Math.min(chosen + 1, findings.length - 1))
    else if (event.key === 'ArrowUp') setChosen(Math.max(chosen - 1, 0))
    else if (event.key === 'Enter') open(findings[chosen])
    else return
    event.preventDefault()
  }
  return (
    <div className="finder">
      <input
        ref={input}
        className="field"
        role="combobox"
        aria-expanded="true"
        aria-controls="findings"
        aria-activedescendant={findings.length > 0 ? `finding-${chosen}` : undefined}
        aria-label={text.shell.find}
        placeholder={text.shell.find}
        value={typed}
        onChange={(event) => {
          setTyped(event.target.value)
          setChosen(0)
        }}
        onKeyDown={press}
      />
      <div id="findings" role="listbox" aria-label={text.shell.findings} className="finder__list">
        {findings.map((finding, index) => (
          // The text field has the focus, and its keys choose.
          // eslint-disable-next-line jsx-a11y/click-events-have-key-events
          <div
            key={`${finding.to} ${finding.label}`}
            id={`finding-${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === chosen}
            onClick={() => open(finding)}
          >
            <Icon name="right" /> <span>{finding.label}</span> <span className="dim sm">{finding.hint}</span>
          </div>
        ))}
        {findings.length === 0 ? <p className="dim">{text.shell.nothingFound}</p> : null}
      </div>
    </div>
  )
}

function useFindings(typed: string): Finding[] {
  const text = useText()
  const once = { every: 60_000 }
  const devices = useGet('/devices', {}, once).data?.data
  const policies = useGet('/routing/policies', {}, once).data?.data
  const tunnels = useGet('/tunnels', {}, once).data?.data
  const settings = useGet('/settings', {}, once).data?.data
  return useMemo(() => {
    const actions: Finding[] = ACTIONS.map(([name, to]) => ({
      label: text.shell.actions[name],
      hint: text.shell.kinds.action,
      to,
    }))
    const pages: Finding[] = entries.flatMap((entry) =>
      entry.tabs.map((tab) => ({
        label: entry.tabs.length > 1 ? `${entry.label(text)}: ${tab.label(text)}` : entry.label(text),
        to: addressOf(entry, tab),
      })),
    )
    // What is typed for nothing in particular starts with the pages.
    const all = typed.trim() === '' ? [...pages, ...actions] : [...actions, ...pages]
    for (const entry of entries) all.push(...(entry.find?.() ?? []))
    for (const each of policies ?? [])
      all.push({ label: each.name, hint: text.shell.kinds.policy, to: `/policies/${each.id}` })
    for (const each of tunnels ?? [])
      all.push({ label: each.name, hint: text.shell.kinds.tunnel, to: `/paths/tunnels/${each.id}` })
    for (const each of devices ?? [])
      all.push({
        label: each.name,
        hint: each.ips?.[0] ?? text.shell.kinds.device,
        to: `/devices/${each.id}`,
      })
    for (const key of keysOf(settings))
      all.push({
        label: key,
        hint: text.shell.kinds.setting,
        to: `/system/settings?find=${encodeURIComponent(key)}&key=${encodeURIComponent(key)}`,
      })
    if (/^[a-z0-9-]+(\.[a-z0-9-]+)+$/i.test(typed.trim()))
      all.unshift({
        label: text.shell.logOf(typed.trim()),
        to: `/dns?domain=${encodeURIComponent(typed.trim())}`,
      })
    const words = typed.toLowerCase().split(/\s+/).filter(Boolean)
    return all
      .filter((finding) =>
        words.every((word) => `${finding.label} ${finding.hint ?? ''}`.toLowerCase().includes(word)),
      )
      .slice(0, MOST)
  }, [text, devices, policies, tunnels, settings, typed])
}
