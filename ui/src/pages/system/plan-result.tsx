// What an import or a rollback changes, or would change.

import type { Schemas } from '@/api/client'
import { Section } from '@/components/section'
import { Clock } from '@/components/time'
import { Table } from '@/components/table'
import { useText } from '@/text'
import { changedOf, PlanChanges } from './plan-changes'
import { countsByKind, groupWarnings } from './plan-counts'

/** Paths that are shown of one warning. */
const SHOWN = 3

type Result = Schemas['PlanResult']

interface Props {
  result: Result
  title?: string
  /** The changes are shown opened. */
  preview?: boolean
  /** Headings of the values before and after. */
  headings?: readonly [string, string]
}

export function PlanResult({ result, title, preview = false, headings }: Props) {
  const text = useText()
  const t = text.system.plan
  const changed = changedOf(result)
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
      {result.errors.length > 0 ? <Errors errors={result.errors} /> : null}
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
      {changed.length + result.settings.length === 0 && result.valid ? <p>{t.nothing}</p> : null}
      {result.changes.length > 0 ? <Kinds result={result} /> : null}
      {changed.length + result.settings.length > 0 ? (
        <details className="fold" open={preview}>
          <summary>
            <span>
              {[
                changed.length > 0 ? t.all(changed.length) : '',
                result.settings.length > 0 ? t.settings(result.settings.length) : '',
              ]
                .filter(Boolean)
                .join(', ')}
            </span>
          </summary>
          <PlanChanges result={result} headings={headings} />
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
    <Table
      label={t.title}
      rows={countsByKind(result.changes)}
      id={({ kind }) => kind}
      dense
      columns={[
        { head: t.kind, bare: true, className: 'med', cell: ({ kind }) => kind },
        { head: t.create, numeric: true, cell: ({ create }) => create },
        { head: t.update, numeric: true, cell: ({ update }) => update },
        { head: t.delete, numeric: true, cell: ({ remove }) => remove },
        { head: t.unchanged, numeric: true, cell: ({ unchanged }) => unchanged },
      ]}
    />
  )
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

function Errors({ errors }: { errors: Schemas['PlanResult']['errors'] }) {
  return (
    <div className="err" role="alert">
      <ul>
        {errors.map((error) => (
          <li key={`${error.path} ${error.rule}`}>
            <code>{error.path}</code> <span lang="en">{error.message}</span>
          </li>
        ))}
      </ul>
    </div>
  )
}
