// The leak matrix: a row for each policy, a column for each state of the tunnels.

import { useSearchParams } from '@/session/search-params'
import { Segmented } from '@/components/segmented'
import { Loaded, Section } from '@/components/section'
import { StateWord } from '@/components/state'
import { useText } from '@/text'
import { EVALUATES_PENDING, useMatrix, usePending, useStatus } from './data'
import { MatrixTable } from './matrix-table'

export function LeakMatrix() {
  const text = useText()
  const [search, setSearch] = useSearchParams()
  const waits = useStatus().data?.data.pending_changes === true
  const pending = usePending()
  const withPending = EVALUATES_PENDING && waits && search.plan !== 'running'
  const running = useMatrix(false)
  const later = useMatrix(true, withPending)
  const shown = withPending ? later : running
  return (
    <Section
      title={text.policies.matrix}
      hint={withPending ? text.policies.matrixPending : text.policies.matrixRunning}
      actions={
        <>
          <Legend />
          {EVALUATES_PENDING && waits ? (
            <Segmented
              label={text.policies.view}
              value={withPending ? 'pending' : 'running'}
              options={[
                ['pending', text.policies.withPending],
                ['running', text.policies.running],
              ]}
              onChange={(plan) => setSearch({ plan: plan === 'running' ? 'running' : undefined })}
            />
          ) : null}
        </>
      }
    >
      <Loaded
        query={shown}
        lines={8}
        isEmpty={(matrix) => matrix.rows.length === 0 && matrix.unrecorded.length === 0}
        empty={<p className="quiet">{text.policies.matrixEmpty}</p>}
      >
        {(matrix) => (
          <>
            <p className={matrix.risk === 'high' ? 'strong' : 'mid'}>
              {text.policies.matrixAnswer[matrix.risk]}
            </p>
            <MatrixTable
              matrix={matrix}
              before={withPending ? running.data?.data : undefined}
              pending={pending?.map((each) => each.id) ?? []}
            />
          </>
        )}
      </Loaded>
      {!EVALUATES_PENDING && waits && pending && pending.length > 0 ? (
        <p className="dim">{text.policies.pendingMatrixMissing(pending.length)}</p>
      ) : null}
    </Section>
  )
}

function Legend() {
  const text = useText()
  return (
    <span className="legend">
      {(['ok', 'blocked', 'direct', 'leak'] as const).map((state) => (
        <StateWord key={state} state={state}>
          {text.policies.legend[state]}
        </StateWord>
      ))}
    </span>
  )
}
