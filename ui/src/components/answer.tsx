// The head of a page: its question, small, and the answer, large; below them the tabs of the entry.

import type { ReactNode } from 'react'
import { addressOf, available, type Entry } from '@/app/entries'
import { Link, usePath } from '@/app/link'
import { useText } from '@/text'

interface Props {
  question: string
  children: ReactNode
  actions?: ReactNode
}

export function Answer({ question, children, actions }: Props) {
  return (
    <section className="answer answer--row">
      <div>
        <p className="answer__q">{question}</p>
        <h1>{children}</h1>
      </div>
      {actions ? <div className="btns">{actions}</div> : null}
    </section>
  )
}

export function Tabs({ entry }: { entry: Entry }) {
  const text = useText()
  const path = usePath()
  const tabs = available([entry])[0]?.tabs ?? []
  if (tabs.length < 2) return null
  return (
    <nav className="tabs" aria-label={entry.label(text)}>
      {tabs.map((tab) => {
        const address = addressOf(entry, tab)
        return (
          <Link key={address} to={address} aria-current={path === address ? 'page' : undefined}>
            {tab.label(text)}
          </Link>
        )
      })}
    </nav>
  )
}
