// The answer to "What happens if the VPN drops?", from the leak matrix.

import type { ReactNode } from 'react'
import { Link } from '@/app/link'
import { useText } from '@/text'
import { countOf, EVALUATES_PENDING, useMatrix, usePolicies, useStatus } from './data'
import { Parts } from './hops'
import { cellOf } from './model'

export function DropAnswer() {
  const text = useText()
  const running = useMatrix(false)
  const policies = usePolicies().data?.data
  const status = useStatus().data?.data
  const waits = EVALUATES_PENDING && status?.pending_changes === true
  const pending = useMatrix(true, waits).data?.data
  const matrix = running.data?.data
  if (running.error && !matrix) return <>{text.common.unreachable}</>
  if (!matrix || !policies) return <>{text.common.loading}</>
  if (policies.length === 0 && matrix.rows.length === 0) return <>{text.policies.noneYet}</>
  if (matrix.rows.length === 0) return <>{text.policies.noneApplied}</>
  const { blocked, direct, other } = countOf(matrix, 'down')
  const total = matrix.rows.length
  const link = (which: string, words: string, shown: number): ReactNode =>
    shown === 0 ? null : (
      <Link to="/policies" search={{ down: which }}>
        {words}
      </Link>
    )
  return (
    <>
      <Parts
        parts={text.policies.ifAllDrop(
          total,
          link('blocked', text.policies.policiesBlock(blocked, total), blocked),
          link('direct', text.policies.letOut(direct, total), direct),
        )}
      />
      {other > 0 ? text.policies.othersRun(other) : null}
      {waits && pending ? <Afterwards running={matrix} pending={pending} /> : null}
    </>
  )
}

type Matrix = NonNullable<ReturnType<typeof useMatrix>['data']>['data']

function Afterwards({ running, pending }: { running: Matrix; pending: Matrix }) {
  const text = useText()
  const before = running.rows
    .filter((row) => cellOf(row, 'down')?.outcome === 'direct')
    .map((row) => row.policy_id)
  const opened = pending.rows.filter(
    (row) => cellOf(row, 'down')?.outcome === 'direct' && !before.includes(row.policy_id),
  )
  if (opened.length === 0) return <>{text.policies.pendingNoDirect}</>
  const names = opened.flatMap((row, at) => [
    at > 0 ? ', ' : '',
    <Link key={row.policy_id} to={`/policies/${row.policy_id}`}>
      {row.name}
    </Link>,
  ])
  return (
    <Parts parts={text.policies.pendingMakesIt(countOf(pending, 'down').direct, <Parts parts={names} />)} />
  )
}
