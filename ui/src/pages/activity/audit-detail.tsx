// What one entry of the audit trail changed.

import { Link } from '@/app/link'
import { useText } from '@/text'
import { changesOf, pageOf, words, type AuditEntry, type Changed } from './audit-entries'

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
          <Fact key={name} name={name} value={show(value)} />
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
  return (
    <div>
      <p>
        <span className="dim">{words(change.type)}</span>{' '}
        <span className="med">{page ? <Link to={page}>{change.name}</Link> : change.name}</span>{' '}
        {t.ops[change.op] ?? change.op}
        {change.fields.length > 0 ? `, ${t.fields(change.fields.length)}` : ''}
      </p>
      {change.fields.length > 0 ? (
        <ul className="entry__fields">
          {change.fields.map((field) => (
            <li key={field.name}>
              <code>{field.name}</code>
              {field.values ? (
                <span className="change">
                  <code className="dim">{show(field.values.from)}</code> →{' '}
                  <code>{show(field.values.to)}</code>
                </span>
              ) : null}
            </li>
          ))}
        </ul>
      ) : null}
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

function show(value: unknown): string {
  if (value === undefined || value === null) return '-'
  return typeof value === 'string' ? value : JSON.stringify(value)
}
