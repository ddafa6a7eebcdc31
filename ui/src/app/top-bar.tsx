// The bar over each page: where one is, the verdict, the palette, the account.

import { useState } from 'react'
import { causesOf } from '@/api/alerts'
import { useAlerts } from '@/api/live'
import { ALERTS } from '@/components/alert-pages'
import { entries } from '@/pages'
import { Icon, Logo } from '@/components/icons'
import { Glyph } from '@/components/state'
import { Age } from '@/components/time'
import { useText } from '@/text'
import { Account } from './account'
import { addressOf, isCurrent } from '@/components/entries'
import { Link, usePath } from '@/session/link'
import { Palette } from './palette'
import { useVerdict } from '@/components/verdict'
import { useCrumb } from '@/session/crumb'

export function TopBar() {
  const text = useText()
  const [open, setOpen] = useState(false)
  return (
    <div className="top">
      <Link className="brand" to="/" aria-label={text.shell.home}>
        <Logo />
        <span>{text.shell.product}</span>
      </Link>
      <Crumbs />
      <div className="top__r">
        <VerdictChip />
        <button type="button" className="palette" onClick={() => setOpen(true)}>
          <Icon name="search" />
          <span>{text.shell.find}</span> <kbd>Ctrl K</kbd>
        </button>
        <Bell />
        <Account />
      </div>
      <Palette open={open} onOpen={setOpen} />
    </div>
  )
}

/** The active alerts, without those that follow from another. Without the event stream their number is not known, and none is shown. */
function Bell() {
  const text = useText()
  const { known, list } = useAlerts()
  const count = causesOf(list).length
  return (
    <Link className="icobtn" to={ALERTS} aria-label={text.shell.alerts(known ? count : null)}>
      <Icon name="bell" />
      {known && count > 0 ? (
        <span className="dot" aria-hidden="true">
          {count > 99 ? '99+' : count}
        </span>
      ) : null}
    </Link>
  )
}

function Crumbs() {
  const text = useText()
  const path = usePath()
  const entry = entries.find((each) => isCurrent(each, path))
  const detail = useCrumb()
  if (!entry) return null
  const tab = entry.tabs.find((each) => addressOf(entry, each) === path)
  const last = detail ?? (tab && entry.tabs.length > 1 ? tab.label(text) : undefined)
  return (
    <nav className="crumbs" aria-label={text.shell.breadcrumb}>
      {last === undefined ? (
        <b>{entry.label(text)}</b>
      ) : (
        <>
          <Link to={entry.path}>{entry.label(text)}</Link> <span aria-hidden="true">/</span> <b>{last}</b>
        </>
      )}
    </nav>
  )
}

/** The verdict as a word with its age, on every page. */
function VerdictChip() {
  const text = useText()
  const { word, state, share, checkedAt } = useVerdict()
  return (
    <Link className={`chip chip--${state}`} to="/">
      <Glyph state={state} />
      {word} {share ? <span>{text.hosts.share.chip(share.covered, share.total)}, </span> : null}
      <span>
        <Age time={checkedAt} />
      </span>
    </Link>
  )
}
