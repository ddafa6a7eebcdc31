// The active alerts, from the event stream.

import { causesOf } from '@/api/alerts'
import { useAlerts } from '@/api/live'
import { Link } from '@/session/link'
import { Section, Skeleton } from '@/components/section'
import { alertState } from '@/components/alert-state'
import { Glyph } from '@/components/state'
import { Clock } from '@/components/time'
import { TwoLines } from '@/components/two-lines'
import { ALERTS } from '@/components/alert-pages'
import { useText } from '@/text'

const MOST = 5

export function AlertsPanel() {
  const text = useText()
  const words = text.overview.alerts
  const { known, list } = useAlerts()
  return (
    <Section
      title={words.title}
      actions={
        <Link className="link" to={ALERTS}>
          {words.all}
        </Link>
      }
    >
      {known ? null : list.length > 0 ? <p className="dim">{words.stale}</p> : <Waiting />}
      {known && list.length === 0 ? <p className="dim">{words.empty}</p> : null}
      {list.length > 0 ? (
        <ul className={known ? 'rows rows--alert' : 'rows rows--alert stale'}>
          {causesOf(list)
            .slice(0, MOST)
            .map((alert) => (
              <li key={`${alert.kind} ${alert.subject}`}>
                <Glyph state={alertState(alert.kind)} />
                <TwoLines second={[alert.kind, alert.subject].filter(Boolean).join(', ')}>
                  <span lang="en">{alert.message}</span>
                </TwoLines>
                <span className="dim sm">
                  <Clock time={alert.since} />
                </span>
              </li>
            ))}
        </ul>
      ) : null}
    </Section>
  )
}

function Waiting() {
  const text = useText()
  return (
    <>
      <Skeleton lines={2} />
      <p className="dim sm">{text.overview.alerts.unknown}</p>
    </>
  )
}
