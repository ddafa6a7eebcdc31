// The answer to "What happens if the VPN drops?", from the leak matrix.

import type { ReactNode } from 'react'
import { Link } from '@/session/link'
import { useText } from '@/text'
import { EVALUATES_PENDING, useMatrix, useOrigins, usePolicies, useStatus } from './data'
import { dropOf } from './drop'
import { Parts } from './hops'
import { cellOf } from './model'
import { originOf, type Origins } from './origin'

export function DropAnswer() {
  const text = useText()
  const running = useMatrix(false)
  const policies = usePolicies().data?.data
  const status = useStatus().data?.data
  const waits = EVALUATES_PENDING && status?.pending_changes === true
  const pending = useMatrix(true, waits).data?.data
  const matrix = running.data?.data
  const origins = useOrigins()
  if ((running.error && !matrix) || origins === null) return <>{text.common.unreachable}</>
  if (!matrix || !policies || !origins) return <>{text.common.loading}</>
  if (policies.length === 0 && matrix.rows.length === 0) return <>{text.policies.noneYet}</>
  if (matrix.rows.length === 0) return <>{text.policies.noneApplied}</>
  const { policies: counts, exceptions, profiles } = dropOf(matrix, origins)
  const { total, blocked, direct, other } = counts
  const link = (which: string, words: string, shown: number): ReactNode =>
    shown === 0 ? null : (
      <Link to="/policies" search={{ down: which }}>
        {words}
      </Link>
    )
  return (
    <>
      {total === 0 ? (
        text.policies.noneInForce
      ) : (
        <Parts
          parts={text.policies.ifAllDrop(
            total,
            link('blocked', text.policies.policiesBlock(blocked, total), blocked),
            link('direct', text.policies.letOut(direct, total), direct),
          )}
        />
      )}
      {other > 0 && other < total ? text.policies.othersRun(other) : null}
      {profiles.total > 0 ? ` ${text.policies.profilesDrop(profiles)}` : null}
      {Object.values(exceptions).some((count) => count > 0) ? (
        <>
          {' '}
          <Link to="/policies/exceptions">{text.policies.exceptionsDrop(exceptions)}</Link>.
        </>
      ) : null}
      {waits && pending ? <Afterwards running={matrix} pending={pending} origins={origins} /> : null}
    </>
  )
}

type Matrix = NonNullable<ReturnType<typeof useMatrix>['data']>['data']

interface AfterwardsProps {
  running: Matrix
  pending: Matrix
  origins: Origins
}

function Afterwards({ running, pending, origins }: AfterwardsProps) {
  const text = useText()
  const before = running.rows
    .filter((row) => cellOf(row, 'down')?.outcome === 'direct')
    .map((row) => row.policy_id)
  const opened = pending.rows.filter(
    (row) =>
      cellOf(row, 'down')?.outcome === 'direct' &&
      !before.includes(row.policy_id) &&
      originOf(row.policy_id, origins) === 'policy',
  )
  if (opened.length === 0) return <>{text.policies.pendingNoDirect}</>
  const names = opened.flatMap((row, at) => [
    at > 0 ? ', ' : '',
    <Link key={row.policy_id} to={`/policies/${row.policy_id}`}>
      {row.name}
    </Link>,
  ])
  return (
    <Parts
      parts={text.policies.pendingMakesIt(dropOf(pending, origins).policies.direct, <Parts parts={names} />)}
    />
  )
}
