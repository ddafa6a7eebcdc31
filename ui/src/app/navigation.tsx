// The navigation: at the side, and at the bottom of small screens.

import { useState } from 'react'
import { entries } from '@/pages'
import { causesOf } from '@/api/alerts'
import { useAlerts } from '@/api/live'
import { useGet } from '@/api/query'
import { Dialog } from '@/components/dialog'
import { Icon, Logo } from '@/components/icons'
import { useText } from '@/text'
import { formatAge } from '@/text/format'
import { AccountButtons } from './account'
import { isCurrent } from '@/components/entries'
import { Link, usePath } from '@/session/link'
import { ThemeChoice } from './theme'
import { LanguageChoice } from './language-choice'

export function SideBar() {
  const text = useText()
  const path = usePath()
  return (
    <header className="side">
      <Link className="brand" to="/" aria-label={text.shell.home}>
        <Logo />
        <span>{text.shell.product}</span>
      </Link>
      <nav className="nav" aria-label={text.shell.main}>
        <ul>
          {entries.map((entry) => (
            <li key={entry.path}>
              <Link to={entry.path} aria-current={isCurrent(entry, path) ? 'page' : undefined}>
                <Icon name={entry.icon} />
                {entry.label(text)} {entry.path === '/activity' ? <AlertCount /> : null}
              </Link>
            </li>
          ))}
        </ul>
      </nav>
      <SideFoot />
    </header>
  )
}

/** The active alerts beside the entry that lists them. */
function AlertCount() {
  const { known, list } = useAlerts()
  const { length } = causesOf(list)
  return known && length > 0 ? <span className="count">{length}</span> : null
}

function SideFoot() {
  const text = useText()
  const platform = useGet('/platform', {}, { every: 60_000 }).data?.data
  const status = useGet('/status', {}, { every: 3000 }).data?.data
  return (
    <div className="side__foot">
      <div>
        <b>{platform?.hostname ?? '-'}</b>
        <br />
        {status
          ? text.shell.running(status.version, formatAge(status.uptime_sec, text))
          : text.common.loading}
      </div>
      <ThemeChoice />
      <LanguageChoice />
    </div>
  )
}

const AT_THE_BOTTOM = ['/', '/devices', '/policies', '/activity']

export function BottomBar() {
  const text = useText()
  const path = usePath()
  const [open, setOpen] = useState(false)
  const shown = entries.filter((entry) => AT_THE_BOTTOM.includes(entry.path))
  const others = entries.filter((entry) => !AT_THE_BOTTOM.includes(entry.path))
  return (
    <nav className="bottom" aria-label={text.shell.mainSmall}>
      {shown.map((entry) => (
        <Link key={entry.path} to={entry.path} aria-current={isCurrent(entry, path) ? 'page' : undefined}>
          <Icon name={entry.icon} />
          {entry.label(text)}
        </Link>
      ))}
      <button type="button" onClick={() => setOpen(true)} aria-haspopup="dialog">
        <Icon name="menu" />
        {text.shell.more}
      </button>
      <Dialog open={open} onClose={() => setOpen(false)} title={text.shell.more}>
        <ul className="more">
          {others.map((entry) => (
            <li key={entry.path}>
              <Link to={entry.path} onClick={() => setOpen(false)}>
                <Icon name={entry.icon} />
                {entry.label(text)}
              </Link>
            </li>
          ))}
        </ul>
        <AccountButtons onDone={() => setOpen(false)} />
        <ThemeChoice />
        <LanguageChoice />
      </Dialog>
    </nav>
  )
}
