// What each policy does now, without its first hop, and without any hop.

import { useGet } from '@/api/query'
import { Link } from '@/session/link'
import { DataTable } from '@/components/data-table'
import type { Column } from '@/components/table'
import { HopChip } from '@/components/path'
import { LoadedSection } from '@/components/section'
import { StateWord, type State } from '@/components/state'
import type { Schemas } from '@/api/client'
import { TwoLines } from '@/components/two-lines'
import { useText } from '@/text'
import type { Outcome } from './model'

type Row = Schemas['FailRow']

export function FailMatrix() {
  const text = useText()
  const query = useGet('/policy/fail-matrix')
  const words = text.policies.failColumns
  const columns: Column<Row>[] = [
    {
      head: words.policy,
      bare: true,
      cell: (row) => (
        <TwoLines second={text.policies.failWords[row.fail_policy]}>
          <Link className="med" to={`/policies/${row.policy_id}`}>
            {row.name}
          </Link>
        </TwoLines>
      ),
    },
    {
      head: words.hops,
      cell: (row) =>
        row.hops.length === 0 ? (
          <span className="dim">-</span>
        ) : (
          <span className="path path--list">
            {row.hops.map((hop) => (
              <span key={`${hop.type} ${hop.target}`} title={hop.reason || undefined}>
                <HopChip
                  state={hop.type === 'interface' ? 'direct' : hop.healthy ? 'ok' : 'down'}
                  name={hop.target}
                />
              </span>
            ))}
          </span>
        ),
    },
    ...(['current', 'if_first_fails', 'if_all_fail'] as const).map((field): Column<Row> => ({
      head: field === 'current' ? words.current : field === 'if_first_fails' ? words.first : words.all,
      cell: (row) => <OutcomeWord outcome={row[field]} />,
    })),
    { head: words.leak, cell: (row) => (row.leak_possible ? text.common.yes : text.common.no) },
  ]
  return (
    <LoadedSection
      title={text.policies.failMatrix}
      hint={text.policies.failMatrixHint}
      query={query}
      empty={<p className="quiet">{text.policies.matrixEmpty}</p>}
    >
      {(rows) => (
        <DataTable
          label={text.policies.failMatrix}
          rows={rows}
          columns={columns}
          id={(row) => row.policy_id}
        />
      )}
    </LoadedSection>
  )
}

const STATES: Record<Outcome, State> = { blocked: 'blocked', direct: 'direct', tunnel: 'ok', next_hop: 'ok' }

function OutcomeWord({ outcome }: { outcome: Outcome }) {
  const text = useText()
  return <StateWord state={STATES[outcome] ?? 'unknown'}>{text.policies.outcomes[outcome]}</StateWord>
}
