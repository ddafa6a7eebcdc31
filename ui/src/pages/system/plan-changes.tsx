// The objects and settings that a plan changes, each with its fields.

import type { Schemas } from '@/api/client'
import { FieldDiffTable } from '@/components/field-diff'
import { useText } from '@/text'

type Result = Schemas['PlanResult']

export function changedOf(result: Result) {
  return result.changes.filter((change) => change.op !== 'unchanged')
}

interface Props {
  result: Result
  /** Headings of the values before and after. */
  headings?: readonly [string, string]
}

export function PlanChanges({ result, headings }: Props) {
  const text = useText()
  const t = text.system.plan
  return (
    // The list scrolls, so it must be reachable by the keyboard.
    // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <div className="planlist" tabIndex={0} role="group" aria-label={t.title}>
      <ul className="rows">
        {changedOf(result).map((change) => (
          <li key={`${change.type} ${change.id} ${change.op}`}>
            <span>
              <span className="dim">{change.type.replaceAll('_', ' ')}</span>{' '}
              <span className="med">{change.name}</span> {t.ops[change.op]}
            </span>
            {change.op === 'update' ? (
              <FieldDiffTable name={change.name} diff={change.diff} headings={headings} />
            ) : null}
          </li>
        ))}
        {result.settings.map(({ key, diff }) => (
          <li key={`setting ${key}`}>
            <span>
              <span className="dim">{t.setting}</span> <span className="med">{key}</span> {t.ops.update}
            </span>
            <FieldDiffTable name={key} diff={diff} headings={headings} />
          </li>
        ))}
      </ul>
    </div>
  )
}
