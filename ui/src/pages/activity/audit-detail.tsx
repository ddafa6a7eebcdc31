// What one entry of the audit trail changed.

import { Link } from '@/session/link'
import { FieldDiffTable, valueText } from '@/components/field-diff'
import { useText } from '@/text'
import { changesOf, fieldNames, pageOf, type AuditEntry, type Changed } from './audit-entries'

export function AuditDetail({ entry }: { entry: AuditEntry }) {
  const text = useText()
  const t = text.activity.audit
  const { changes, rest } = changesOf(entry.details)
  return (
    <div className="entry">
      {changes.map((change, index) => (
        <Change key={`${change.type} ${change.id ?? change.name} ${index}`} change={change} />
      ))}
      <dl className="entry__facts">
        <Fact name={t.number} value={String(entry.id)} />
        {rest.map(([name, value]) => (
          <Fact key={name} name={name} value={valueText(value)} />
        ))}
        {entry.resource_id ? (
          <div>
            <dt>{t.resourceId}</dt>
            <dd className="mono">
              <Link to="/activity" search={{ resource_id: entry.resource_id }}>
                {entry.resource_id}
              </Link>
            </dd>
          </div>
        ) : null}
        {entry.request_id ? (
          <div>
            <dt>{t.requestId}</dt>
            <dd className="mono">
              <Link to="/activity" search={{ request_id: entry.request_id }}>
                {entry.request_id}
              </Link>
            </dd>
          </div>
        ) : null}
        <Fact name={t.hash} value={entry.hash ?? '-'} />
        <Fact name={t.prevHash} value={entry.prev_hash || '-'} />
      </dl>
    </div>
  )
}

function Change({ change }: { change: Changed }) {
  const text = useText()
  const t = text.activity.audit
  const page = change.op === 'delete' ? undefined : pageOf(change.type, change.id)
  const count = fieldNames(change).length
  return (
    <div>
      <p>
        <span className="dim">{text.actions.object(change.type)}</span>{' '}
        <span className="med">{page ? <Link to={page}>{change.name}</Link> : change.name}</span>{' '}
        {t.ops[change.op] ?? change.op}
        {count > 0 ? `, ${t.fields(count)}` : ''}
      </p>
      <FieldDiffTable name={change.name} diff={change.diff} others={change.others} />
    </div>
  )
}

function Fact({ name, value }: { name: string; value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd className="mono">{value}</dd>
    </div>
  )
}
