// Kernel objects that another program changed.

import { useGet } from '@/api/query'
import type { Schemas } from '@/api/client'
import { DataTable, type ColumnDef } from '@/components/data-table'
import { Loaded, Section } from '@/components/section'
import { StateWord } from '@/components/state'
import { Age } from '@/components/time'
import { useText } from '@/text'

type Item = Schemas['Drift']

export function Drift() {
  const text = useText()
  const words = text.policies.driftColumns
  const columns: ColumnDef<Item, unknown>[] = [
    {
      id: 'object',
      header: words.object,
      meta: { label: '' },
      enableSorting: false,
      cell: ({ row }) => (
        <span className="two">
          <span className="med">{row.original.resource}</span>
          <small>{row.original.type}</small>
        </span>
      ),
    },
    { accessorKey: 'field', header: words.field, enableSorting: false },
    {
      id: 'expected',
      header: words.expected,
      enableSorting: false,
      cell: ({ row }) => <code>{row.original.expected || '-'}</code>,
    },
    {
      id: 'actual',
      header: words.actual,
      enableSorting: false,
      cell: ({ row }) => <code>{row.original.actual || '-'}</code>,
    },
    {
      id: 'at',
      header: words.at,
      enableSorting: false,
      cell: ({ row }) => <Age time={row.original.detected_at} />,
    },
    {
      id: 'state',
      header: words.state,
      enableSorting: false,
      cell: ({ row }) =>
        row.original.repaired ? (
          <StateWord state="ok">{text.policies.repaired}</StateWord>
        ) : (
          <StateWord state="degraded">{text.policies.notRepaired}</StateWord>
        ),
    },
  ]
  return (
    <Section title={text.policies.drift} hint={text.policies.driftHint}>
      <Loaded
        query={useGet('/drift')}
        isEmpty={(items) => items.length === 0}
        empty={<p className="quiet">{text.policies.driftEmpty}</p>}
      >
        {(items) => (
          <DataTable
            label={text.policies.drift}
            rows={items}
            columns={columns}
            id={(item) => `${item.type} ${item.resource} ${item.field} ${item.detected_at}`}
          />
        )}
      </Loaded>
    </Section>
  )
}
