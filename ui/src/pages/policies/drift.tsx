// Kernel objects that another program changed.

import { useGet } from '@/api/query'
import type { Schemas } from '@/api/client'
import { DataTable } from '@/components/data-table'
import type { Column } from '@/components/table'
import { LoadedSection } from '@/components/section'
import { StateWord } from '@/components/state'
import { Age } from '@/components/time'
import { TwoLines } from '@/components/two-lines'
import { useText } from '@/text'

type Item = Schemas['Drift']

export function Drift() {
  const text = useText()
  const words = text.policies.driftColumns
  const columns: Column<Item>[] = [
    {
      head: words.object,
      bare: true,
      cell: (row) => (
        <TwoLines second={row.type}>
          <span className="med">{row.resource}</span>
        </TwoLines>
      ),
    },
    { head: words.field, cell: (row) => row.field },
    { head: words.expected, cell: (row) => <code>{row.expected || '-'}</code> },
    { head: words.actual, cell: (row) => <code>{row.actual || '-'}</code> },
    { head: words.at, cell: (row) => <Age time={row.detected_at} /> },
    {
      head: words.state,
      cell: (row) =>
        row.repaired ? (
          <StateWord state="ok">{text.policies.repaired}</StateWord>
        ) : (
          <StateWord state="degraded">{text.policies.notRepaired}</StateWord>
        ),
    },
  ]
  return (
    <LoadedSection
      title={text.policies.drift}
      hint={text.policies.driftHint}
      query={useGet('/drift')}
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
    </LoadedSection>
  )
}
