// The fields that the saved policies change.

import { useText, type Text } from '@/text'
import { useNames, sourceWords } from './data'
import { fieldsOf } from './model'
import type { ReviewItem } from './review-data'
import { Table } from '@/components/table'

/** A value of a field as text. */
export function wordsOf(value: unknown, text: Text): string {
  if (value === null || value === undefined || value === '') return text.common.none
  if (typeof value === 'boolean') return value ? text.common.yes : text.common.no
  if (Array.isArray(value))
    return value.length === 0
      ? text.common.none
      : value
          .map((each) =>
            typeof each === 'string' ? each : ((each as { target?: string }).target ?? JSON.stringify(each)),
          )
          .join(', ')
  return typeof value === 'string' || typeof value === 'number' ? String(value) : JSON.stringify(value)
}

interface Row {
  key: string
  policy: string
  field: string
  before: string
  after: string
  by: string
}

export function FieldTable({ items }: { items: ReviewItem[] }) {
  const text = useText()
  const names = useNames()
  const words = text.policies.fieldColumns
  const rows = items.flatMap((item): Row[] => {
    const { pending, editors } = item
    const { stored, kind, name, id } = pending
    const by = editors.join(', ') || '-'
    const row = (field: string, before: string, after: string): Row => ({
      key: `${id} ${field}`,
      policy: name,
      field,
      before,
      after,
      by,
    })
    if (kind === 'removed') return [row('-', name, text.policies.removed)]
    if (!stored) return []
    if (Object.keys(pending.diff).length === 0)
      return [
        row('source', '-', sourceWords(stored, names, text)),
        row('priority', '-', String(stored.priority)),
        row('hops', '-', wordsOf((stored.effective ?? stored).hops, text)),
        row('fail_policy', '-', wordsOf((stored.effective ?? stored).fail_policy, text)),
      ]
    return fieldsOf(pending).map(({ field, from, to }) => row(field, wordsOf(from, text), wordsOf(to, text)))
  })
  if (rows.length === 0) return <p className="quiet">{text.policies.fedChange}</p>
  return (
    <Table
      label={text.policies.reviewTabs.policies}
      rows={rows}
      id={(row) => row.key}
      columns={[
        { head: words.policy, bare: true, className: 'med', cell: (row) => row.policy },
        { head: words.field, cell: (row) => <code>{row.field}</code> },
        { head: words.before, className: 'mid', cell: (row) => row.before },
        { head: words.after, cell: (row) => row.after },
        { head: words.by, className: 'dim', cell: (row) => row.by },
      ]}
    />
  )
}
