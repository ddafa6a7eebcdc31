// An open alert, with what one can do about it and what follows from it.

import { call, client } from '@/api/client'
import { useAction } from '@/components/action'
import { pageOf } from '@/components/alert-pages'
import { alertState } from '@/components/alert-state'
import { Button } from '@/components/button'
import { Actions } from '@/components/menu'
import { Glyph, Tag } from '@/components/state'
import { useAge } from '@/components/time'
import { Link } from '@/session/link'
import { useText } from '@/text'
import { formatAge, formatTime } from '@/text/format'
import type { Alert, AlertGroup } from './alert-groups'

export function AlertRow({ alert, consequences }: AlertGroup) {
  const words = useText().alerts
  return (
    <li>
      <Glyph state={alertState(alert.kind)} />
      <div>
        <AlertText alert={alert} />
        {consequences.length > 0 ? (
          <details className="fold">
            <summary>{words.consequences(consequences.length)}</summary>
            <ul className="rows">
              {consequences.map((each) => (
                <li key={each.id}>
                  <AlertText alert={each} />
                </li>
              ))}
            </ul>
          </details>
        ) : null}
      </div>
      <Deeds alert={alert} />
    </li>
  )
}

/** What an alert says, of what, and since when. */
function AlertText({ alert }: { alert: Alert }) {
  const text = useText()
  const words = text.alerts
  const age = useAge(alert.first_seen)
  const { acknowledged_by: by, acknowledged_at: at, muted_until: muted } = alert
  return (
    <div className="two">
      <span>
        <AlertName alert={alert} /> <Tag>{words.severities[alert.severity]}</Tag>
      </span>
      <span lang="en">{alert.message}</span>
      <small>
        {words.since(age)}
        {alert.count > 1 ? `, ${words.times(alert.count)}` : ''}
      </small>
      {by !== null && at !== null ? <small>{words.acknowledgedBy(by, formatTime(at))}</small> : null}
      {muted === null ? null : <small>{words.mutedBy(alert.muted_by ?? '-', formatTime(muted))}</small>}
    </div>
  )
}

/** The kind of an alert and its subject, with a link to the page of the subject. */
export function AlertName({ alert }: { alert: Alert }) {
  const words = useText().alerts
  const [kind] = words.kinds[alert.kind]
  const subject = alert.labels[alert.resource_type] ?? alert.subject
  const to = pageOf(alert)
  const name = <span className="med">{subject === '' ? kind : `${kind}: ${subject}`}</span>
  return to === undefined ? name : <Link to={to}>{name}</Link>
}

function Deeds({ alert }: { alert: Alert }) {
  const words = useText().alerts
  const path = { params: { path: { id: String(alert.id) } } } as const
  const acknowledge = useAction(
    () => call(client.POST('/alerts/{id}/acknowledge', path)),
    (changed) => words.acknowledged(changed.title),
  )
  const resolve = useAction(
    () => call(client.POST('/alerts/{id}/resolve', path)),
    (changed) => words.resolved(changed.title),
  )
  return (
    <span className="btns">
      {alert.status === 'active' ? (
        <Button size="small" needs="operator" does={acknowledge}>
          {words.acknowledge}
        </Button>
      ) : null}
      <Mute alert={alert} />
      <Button size="small" kind="ghost" needs="operator" does={resolve}>
        {words.resolve}
      </Button>
    </span>
  )
}

/** Times of a mute, in seconds. */
const MUTES = [3600, 8 * 3600, 86_400, 7 * 86_400]

/** Keeps receivers from being notified of an alert for a time. */
function Mute({ alert }: { alert: Alert }) {
  const text = useText()
  const words = text.alerts
  const path = { path: { id: String(alert.id) } }
  const mute = useAction(
    (seconds: number) =>
      call(client.POST('/alerts/{id}/mute', { params: path, body: { duration_sec: seconds } })),
    (changed) => words.muted(changed.title, formatTime(changed.muted_until ?? '')),
  )
  const unmute = useAction(
    () => call(client.POST('/alerts/{id}/unmute', { params: path })),
    (changed) => words.unmuted(changed.title),
  )
  if (alert.muted_until !== null)
    return (
      <Button size="small" needs="operator" does={unmute}>
        {words.unmute}
      </Button>
    )
  return (
    <Actions
      label={words.mute}
      button={words.mute}
      small
      actions={MUTES.map((seconds) => ({
        id: String(seconds),
        label: words.muteFor(formatAge(seconds, text)),
        needs: 'operator',
        disabled: mute.busy,
        run: () => mute.run(seconds),
      }))}
    />
  )
}
