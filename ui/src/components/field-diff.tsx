// The changed fields of an object, with their values before and after.

import type { Schemas } from '@/api/client'
import { useText } from '@/text'

export type FieldDiff = Schemas['FieldDiff']

interface Props {
  /** The object, for the name of the table. */
  name: string
  diff: Record<string, FieldDiff>
  /** Headings of the values before and after. */
  headings?: readonly [string, string]
  /** Fields that changed without values in the record. */
  others?: string[]
}

export function FieldDiffTable({ name, diff, headings, others = [] }: Props) {
  const text = useText()
  const t = text.common.diff
  const [before, after] = headings ?? [t.before, t.after]
  const fields = Object.entries(diff)
  if (fields.length + others.length === 0) return null
  return (
    <table className="tbl tbl--card tbl--dense fielddiff" aria-label={t.of(name)}>
      <thead>
        <tr>
          <th scope="col">{t.field}</th>
          <th scope="col">{before}</th>
          <th scope="col">{after}</th>
        </tr>
      </thead>
      <tbody>
        {fields.map(([field, change]) => (
          <tr key={field}>
            <td>
              <code>{field}</code>
            </td>
            {change.secret ? (
              <td data-l={after} colSpan={2} className="dim">
                {t.secret(change.secret)}
              </td>
            ) : (
              <>
                <td data-l={before} className="dim">
                  <Shown value={change.from} cut={change.truncated === true} />
                </td>
                <td data-l={after}>
                  <Shown value={change.to} cut={change.truncated === true} />
                </td>
              </>
            )}
          </tr>
        ))}
        {others.map((field) => (
          <tr key={field}>
            <td>
              <code>{field}</code>
            </td>
            <td data-l={after} colSpan={2} className="dim">
              {t.noValues}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function Shown({ value, cut }: { value: unknown; cut: boolean }) {
  const text = useText()
  const shown = valueText(value)
  return (
    <>
      <code className="wrap">{shown}</code>
      {cut && value !== undefined ? <small className="dim"> {text.common.diff.truncated}</small> : null}
    </>
  )
}

/** A value as text; missing ones are a dash. */
export function valueText(value: unknown): string {
  if (value === undefined || value === null || value === '') return '-'
  return typeof value === 'string' ? value : JSON.stringify(value)
}
