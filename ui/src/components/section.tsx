// A part of a page with its heading, and a part whose data is read: it loads, is empty, fails or is not supported.

import { useEffect, useId, useState, type ReactNode } from 'react'
import type { UseQueryResult } from '@tanstack/react-query'
import { ApiError, type Answer } from '@/api/client'
import { Unreachable } from '@/api/errors'
import { otherFields } from '@/api/other-fields'
import { useText } from '@/text'
import { useAge } from './time'
import { Button } from './button'
import { Glyph } from './state'

interface SectionProps {
  title: ReactNode
  /** A sentence beside the heading. */
  hint?: ReactNode
  /** Links and buttons at the right. */
  actions?: ReactNode
  children: ReactNode
}

export function Section({ title, hint, actions, children }: SectionProps) {
  const id = useId()
  return (
    <section className="sec" aria-labelledby={id}>
      <div className="sec__h">
        <h2 id={id}>{title}</h2>
        {hint ? <p>{hint}</p> : null}
        {actions ? <div className="r">{actions}</div> : null}
      </div>
      {children}
    </section>
  )
}

interface LoadedProps<T> {
  query: UseQueryResult<Answer<T>>
  /** Reports whether there is nothing to show; a list without entries if not given. */
  isEmpty?: (data: T) => boolean
  /** Shown if there is nothing: what it is, and the next action. */
  empty?: ReactNode
  /** Height while loading, in lines. */
  lines?: number
  children: (data: T) => ReactNode
}

/** Data of the API in one of its four states. The last good data stays while an error lasts. */
export function Loaded<T>({ query, isEmpty = hasNone, empty, lines = 3, children }: LoadedProps<T>) {
  const { data, error } = query
  if (data) {
    const body = empty !== undefined && isEmpty(data.data) ? empty : children(data.data)
    if (!error) return <>{body}</>
    return (
      <>
        <Failure error={error} since={query.dataUpdatedAt} retry={() => void query.refetch()} />
        <div className="stale">{body}</div>
      </>
    )
  }
  if (error) return <Failure error={error} retry={() => void query.refetch()} />
  return <Skeleton lines={lines} />
}

const hasNone = (data: unknown) => Array.isArray(data) && data.length === 0

/** A section whose data is read. */
export function LoadedSection<T>(props: LoadedProps<T> & Omit<SectionProps, 'children'>) {
  const { title, hint, actions, ...loaded } = props
  return (
    <Section title={title} hint={hint} actions={actions}>
      <Loaded {...loaded} />
    </Section>
  )
}

/** Lines in place of data that has not arrived. Nothing is drawn for the first 300 ms. */
export function Skeleton({ lines }: { lines: number }) {
  const text = useText()
  const [late, setLate] = useState(false)
  useEffect(() => {
    const timer = window.setTimeout(() => setLate(true), 300)
    return () => window.clearTimeout(timer)
  }, [])
  return (
    <div className="loading" role="status" aria-label={text.common.loading}>
      {Array.from({ length: lines }, (_, line) => (
        <span key={line} className={late ? `sk sk--${[90, 60, 80, 40][line % 4]}` : 'sk sk--hidden'} />
      ))}
    </div>
  )
}

interface FailureProps {
  /** Without an error nothing is drawn. */
  error: Error | null
  /** When the data was read that is still shown. */
  since?: number
  retry?: () => void
}

/** An error in words: what failed, its code and the id of the request. */
export function Failure({ error, since, retry }: FailureProps) {
  const text = useText()
  if (!error) return null
  const known = error instanceof ApiError
  if (known && error.status === 501) return <NotSupported error={error} />
  const fields = known ? otherFields(error) : []
  return (
    <div className="err">
      <p className="strong" role="alert" lang={known ? 'en' : undefined}>
        {error instanceof Unreachable ? text.common.unreachable : known ? error.message : text.common.failed}
      </p>
      {known ? (
        <p className="dim sm mono">
          {error.status} {error.code}
          {error.requestId ? `, ${text.common.request} ${error.requestId}` : ''}
        </p>
      ) : null}
      {fields.length > 0 ? (
        <ul>
          {fields.map((field) => (
            <li key={`${field.path} ${field.message}`}>
              <code>{field.path}</code> <span lang="en">{field.message}</span>
            </li>
          ))}
        </ul>
      ) : null}
      {since ? <LastGood since={since} /> : null}
      {retry ? (
        <div>
          <Button size="small" icon="refresh" onClick={retry}>
            {text.common.retry}
          </Button>
        </div>
      ) : null}
    </div>
  )
}

/** The age of the data below an error. It counts on, so it is no part of what is announced. */
function LastGood({ since }: { since: number }) {
  const text = useText()
  return <p className="dim sm">{text.common.lastGood(useAge(new Date(since).toISOString()))}</p>
}

/** A part that this host or version does not have. It is no error. */
function NotSupported({ error: { message, details } }: { error: ApiError }) {
  const text = useText()
  // What the host lacks, or how the gateway knows.
  const reasons = [details.needs, details.cause].filter((each) => typeof each === 'string')
  return (
    <div className="quiet" role="status">
      <Glyph state="idle" /> <span className="strong">{text.common.notSupported}</span>{' '}
      <span lang="en">{message}</span>
      {reasons.map((each) => (
        <p key={each} className="dim sm mono" lang="en">
          {each}
        </p>
      ))}
    </div>
  )
}

interface EmptyProps {
  /** What would stand here. */
  children: ReactNode
  /** The next action. */
  action?: ReactNode
  /** The same by the command-line client. */
  command?: string
}

export function Empty({ children, action, command }: EmptyProps) {
  return (
    <div className="quiet">
      <p>{children}</p>
      {action ? <div className="btns">{action}</div> : null}
      {command ? (
        <p className="dim sm">
          <code>{command}</code>
        </p>
      ) : null}
    </div>
  )
}
