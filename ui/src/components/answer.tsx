// The head of a page: its question, small, and the answer, large; below them the tabs of the entry.

import type { UseQueryResult } from '@tanstack/react-query'
import { useEffect, useRef, type ReactNode } from 'react'
import type { Answer as Answered } from '@/api/client'
import { addressOf, useEntry, type Entry } from '@/components/entries'
import { Link, usePath } from '@/session/link'
import { useText, type Text } from '@/text'
import { formatNumber } from '@/text/format'

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

interface PageProps extends Omit<Props, 'children'> {
  answer: ReactNode
  children: ReactNode
}

/** A page of an entry: its question and answer, the tabs of the entry, and its parts. */
export function Page({ question, answer, actions, children }: PageProps) {
  return (
    <>
      <Answer question={question} actions={actions}>
        {answer}
      </Answer>
      <Tabs />
      {children}
    </>
  )
}

/** The answer of a page by what it reads. A page never goes on saying what was read before an error. */
export function answerOf<T>(
  { data, error }: UseQueryResult<Answered<T>>,
  { common }: Text,
  say: (data: T) => ReactNode,
): ReactNode {
  return error ? common.unreachable : data ? say(data.data) : common.loading
}

function Tabs() {
  const entry = useEntry()
  return entry && entry.tabs.length > 1 ? <TabBar entry={entry} /> : null
}

function TabBar({ entry }: { entry: Entry }) {
  const text = useText()
  const path = usePath()
  const bar = useRef<HTMLElement>(null)
  // A detail page belongs to the tab whose address it continues: the longest one.
  const current = entry.tabs
    .map((tab) => addressOf(entry, tab))
    .filter((address) => path === address || path.startsWith(`${address}/`))
    .sort((one, other) => other.length - one.length)[0]
  // On a small screen the bar scrolls; the current tab is in view.
  useEffect(() => {
    const link = bar.current?.querySelector<HTMLElement>('[aria-current]')
    if (bar.current && link)
      bar.current.scrollLeft = link.offsetLeft + link.offsetWidth - bar.current.clientWidth + 48
  }, [current])
  return (
    <nav ref={bar} className="tabs" aria-label={entry.label(text)}>
      {entry.tabs.map((tab) => {
        const address = addressOf(entry, tab)
        return (
          <Link key={address} to={address} aria-current={address === current ? 'page' : undefined}>
            {tab.label(text)}
            {tab.useCount ? <Count useCount={tab.useCount} /> : null}
          </Link>
        )
      })}
    </nav>
  )
}

function Count({ useCount }: { useCount: () => number | undefined }) {
  const count = useCount()
  return count === undefined ? null : <span className="n">{formatNumber(count)}</span>
}
