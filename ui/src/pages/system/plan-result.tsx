// What an import or a rollback changes, or would change.

import type { Schemas } from '@/api/client'
import { Section } from '@/components/section'
import { Clock } from '@/components/time'
import { useText } from '@/text'
import { countsByKind, groupWarnings } from './plan-counts'

/** Paths that are shown of one warning. */
const SHOWN = 3

type Result = Schemas['PlanResult']

export function PlanResult({ result, title }: { result: Result; title?: string }) {
  const text = useText()
  const t = text.system.plan
  const changed = result.changes.filter((change) => change.op !== 'unchanged')
  return (
    <Section
      title={title ?? t.title}
      hint={t.counts(
        result.counts.create,
        result.counts.update,
        result.counts.delete,
        result.counts.unchanged,
      )}
    >
      {result.valid ? null : <p className="strong">{t.invalid}</p>}
      {result.errors.length > 0 ? (
        <div className="err" role="alert">
          <ul>
            {result.errors.map((error) => (
              <li key={`${error.path} ${error.rule}`}>
                <code>{error.path}</code> {error.message}
              </li>
            ))}
          </ul>
        </div>
      ) : null}
      {result.warnings.length > 0 ? (
        <ul className="rows">
          {groupWarnings(result.warnings).map(({ message, paths }) => (
            <li key={message}>
              <span>
                {message} <code className="dim wrap">{paths.slice(0, SHOWN).join(', ')}</code>
                {paths.length > SHOWN ? <span className="dim"> {t.others(paths.length - SHOWN)}</span> : null}
              </span>
            </li>
          ))}
        </ul>
      ) : null}
      {changed.length === 0 && result.valid ? <p>{t.nothing}</p> : null}
      {result.changes.length > 0 ? <Kinds result={result} /> : null}
      {changed.length > 0 ? (
        <details className="fold">
          <summary>
            <span>{t.all(changed.length)}</span>
          </summary>
          <div className="planlist">
            <ul className="rows">
              {changed.map((change) => (
                <li key={`${change.type} ${change.id} ${change.op}`}>
                  <span>
                    <span className="dim">{change.type}</span> <span className="med">{change.name}</span>{' '}
                    {t.ops[change.op] ?? change.op}
                  </span>
                  {change.op === 'update' ? <Fields diff={change.diff} /> : null}
                </li>
              ))}
            </ul>
          </div>
        </details>
      ) : null}
      {result.plan ? <Dataplane plan={result.plan} /> : null}
      {result.applied && result.snapshot ? <p className="dim">{t.snapshot(result.snapshot)}</p> : null}
      {result.applied && result.pending_confirm_until ? (
        <p className="dim">
          <Clock time={result.pending_confirm_until} seconds />
        </p>
      ) : null}
    </Section>
  )
}

function Kinds({ result }: { result: Result }) {
  const text = useText()
  const t = text.system.plan
  return (
    <table className="tbl tbl--card tbl--dense" aria-label={t.title}>
      <thead>
        <tr>
          <th scope="col">{t.kind}</th>
          <th scope="col" className="num">
            {t.create}
          </th>
          <th scope="col" className="num">
            {t.update}
          </th>
          <th scope="col" className="num">
            {t.delete}
          </th>
          <th scope="col" className="num">
            {t.unchanged}
          </th>
        </tr>
      </thead>
      <tbody>
        {countsByKind(result.changes).map(({ kind, create, update, remove, unchanged }) => (
          <tr key={kind}>
            <td className="med">{kind}</td>
            <td data-l={t.create} className="num">
              {create}
            </td>
            <td data-l={t.update} className="num">
              {update}
            </td>
            <td data-l={t.delete} className="num">
              {remove}
            </td>
            <td data-l={t.unchanged} className="num">
              {unchanged}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function Fields({ diff }: { diff: Record<string, Schemas['FieldDiff']> }) {
  const text = useText()
  const t = text.system.plan
  return (
    <ul className="entry__fields">
      {Object.entries(diff).map(([field, { from, to, secret }]) => (
        <li key={field}>
          <code>{field}</code>{' '}
          {secret ? (
            <span className="dim">
              {t.secret} {secret}
            </span>
          ) : (
            <>
              <code className="dim wrap">{show(from)}</code> → <code className="wrap">{show(to)}</code>
            </>
          )}
        </li>
      ))}
    </ul>
  )
}

function show(value: unknown): string {
  if (value === undefined || value === null) return '-'
  return typeof value === 'string' ? value : JSON.stringify(value)
}

function Dataplane({ plan }: { plan: Schemas['PlanDiff'] }) {
  const text = useText()
  const t = text.system.plan
  const parts = Object.entries(plan.parts).filter(([, part]) => part.added_count + part.removed_count > 0)
  if (!plan.changed || parts.length === 0) return <p className="dim">{t.dataplaneSame}</p>
  return (
    <details className="fold">
      <summary>
        <span>{t.dataplane}</span>
      </summary>
      <div>
        {parts.map(([name, part]) => (
          <div key={name}>
            <p>
              <span className="med">{name}</span>{' '}
              <span className="dim">
                {t.added(part.added_count)}, {t.removed(part.removed_count)}
              </span>
            </p>
            <div className="diff">
              {part.removed.map((line, index) => (
                <span key={`- ${index}`} className="d">
                  - {line}
                </span>
              ))}
              {part.added.map((line, index) => (
                <span key={`+ ${index}`} className="a">
                  + {line}
                </span>
              ))}
            </div>
          </div>
        ))}
      </div>
    </details>
  )
}
