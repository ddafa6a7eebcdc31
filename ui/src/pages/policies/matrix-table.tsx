// The leak matrix as a table: a shape and a word in each cell, the colour comes third.

import type { Schemas } from '@/api/client'
import { Link } from '@/session/link'
import { StateWord, Tag } from '@/components/state'
import { useText } from '@/text'
import { cellWords, stateLabel } from './cell-words'
import { useOrigins } from './data'
import {
  cellOf,
  hopColumns,
  sameCell,
  stateOf,
  type Cell,
  type LeakMatrix,
  type LeakRow,
  type UnrecordedRow,
} from './model'
import { addressOf } from './origin'

interface Props {
  matrix: LeakMatrix
  /** The matrix of the active plan, to mark what changes. */
  before?: LeakMatrix
  pending?: string[]
  /** Only the row of this policy, as a list of its states. */
  only?: string
  narrow?: boolean
}

/** Order of the columns: single hops stand between "first hop" and "all down". */
function columnsOf(matrix: LeakMatrix): string[] {
  const hops = hopColumns(matrix).map((column) => column.state)
  const fixed = (matrix.states as readonly string[]).filter((state) => !hops.includes(state))
  // With a column for each hop, the one of the first hop says nothing more.
  const general = hops.length > 0 ? fixed.filter((state) => state !== 'degraded') : fixed
  const at = general.indexOf('down')
  return at < 0 ? [...general, ...hops] : [...general.slice(0, at), ...hops, ...general.slice(at)]
}

export function MatrixTable({ matrix, before, pending = [], only, narrow = false }: Props) {
  const text = useText()
  const origins = useOrigins()
  const columns = columnsOf(matrix)
  const rows = only === undefined ? matrix.rows : matrix.rows.filter((row) => row.policy_id === only)
  return (
    <div className="scrollx">
      <table className={narrow ? 'mx mx--list' : 'mx mx--auto'} aria-label={text.policies.matrix}>
        <thead>
          <tr>
            <td className="mx__corner" />
            {columns.map((state) => (
              <th key={state} scope="col">
                {stateLabel(matrix, state, text)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => {
            const old = before?.rows.find((each) => each.policy_id === row.policy_id)
            return (
              <tr key={row.policy_id}>
                <th scope="row">
                  <Link to={addressOf(row.policy_id, origins)}>{row.name}</Link>{' '}
                  {before && pending.includes(row.policy_id) ? (
                    <Tag kind="pending">{text.policies.pendingTag}</Tag>
                  ) : null}
                </th>
                {columns.map((state) => {
                  const cell = cellOf(row, state)
                  return (
                    <MatrixCell
                      key={state}
                      row={row}
                      cell={cell}
                      label={stateLabel(matrix, state, text)}
                      changed={before !== undefined && !sameCell(cell, old && cellOf(old, state))}
                    />
                  )
                })}
              </tr>
            )
          })}
          {only === undefined
            ? matrix.unrecorded.map((row) => (
                <UnrecordedHosts
                  key={`${row.treatment} ${row.policy?.id}`}
                  row={row}
                  matrix={matrix}
                  columns={columns}
                />
              ))
            : null}
        </tbody>
      </table>
    </div>
  )
}

interface UnrecordedProps {
  row: UnrecordedRow
  matrix: LeakMatrix
  columns: string[]
}

/** A row of hosts without a device record, which no filter for devices finds. */
function UnrecordedHosts({ row, matrix, columns }: UnrecordedProps) {
  const text = useText()
  const policy = matrix.rows.find((each) => each.policy_id === row.policy?.id)
  const by = row.policy?.name ?? text.hosts.treatments[row.treatment] ?? row.treatment
  return (
    <tr>
      <th scope="row">
        <Link to="/devices/hosts" search={{ only: 'strangers', decision: row.treatment }}>
          {text.policies.matrixUnrecorded(row.hosts, by)}
        </Link>
      </th>
      {columns.map((state) => (
        <MatrixCell
          key={state}
          row={policy ?? { fail_policy: 'fail-closed', risk: 'none' }}
          cell={cellOf(row, state)}
          label={stateLabel(matrix, state, text)}
          changed={false}
        />
      ))}
    </tr>
  )
}

interface CellProps {
  row: Pick<LeakRow, 'fail_policy' | 'risk'>
  cell: Cell | undefined
  label: string
  changed: boolean
}

function MatrixCell({ row, cell, label, changed }: CellProps) {
  const text = useText()
  if (!cell)
    return (
      <td data-l={label} className="dim">
        -
      </td>
    )
  const state = stateOf(cell, row)
  const said = (outcome: Schemas['Outcome']) => text.policies.outcomes[outcome]
  return (
    <td
      className={`m-${state}${changed ? ' m-new' : ''}`}
      data-l={label}
      title={text.policies.cellTitle(said(cell.dns), said(cell.ipv6))}
    >
      <StateWord state={state}>{cellWords(cell, row, text)}</StateWord>
    </td>
  )
}
