// What a draft does in each situation, and what the active version does by the leak matrix.

import { StateWord } from '@/components/state'
import { useText } from '@/text'
import { formatBytes, formatNumber } from '@/text/format'
import { useChains, useClasses, useMatrix, useProfiles } from './data'
import { predictedSide } from './effects'
import { MatrixTable } from './matrix-table'
import type { Draft, Policy } from './model'
import { Now } from './now'
import { predict, resolve, SITUATIONS } from './predict'

export function useResolved(draft: Draft) {
  const profiles = useProfiles().data?.data
  const chains = useChains().data?.data
  const classes = useClasses().data?.data
  const find = <T extends { id: string; name: string }>(list: T[] | undefined, key: string | null) =>
    key ? list?.find((each) => each.id === key || each.name === key) : undefined
  const cls = find(classes, draft.privacy_class)
  const way = resolve(draft, find(profiles, draft.profile), find(chains, draft.chain), cls?.fail_policy_floor)
  return { way, cls }
}

export function PolicyPreview({ policy, draft }: { policy: Policy | null; draft: Draft }) {
  const text = useText()
  const { way, cls } = useResolved(draft)
  const matrix = useMatrix(false).data?.data
  const own = draft.fail_policy ?? 'fail-closed'
  const inForce = policy && matrix?.rows.some((row) => row.policy_id === policy.id)
  return (
    <>
      <section className="sec">
        <div className="sec__h">
          <h2>{text.policies.preview}</h2>
        </div>
        <dl className="facts situations">
          {SITUATIONS.map((situation) => {
            const side = predictedSide(predict(way, situation), text)
            return (
              <div className="facts__row" key={situation}>
                <dt>{text.policies.situations[situation]}</dt>
                <dd>
                  <StateWord state={side.state}>{side.words}</StateWord>
                </dd>
              </div>
            )
          })}
        </dl>
        {cls && way.fail_policy !== own ? (
          <p className="dim sm">{text.policies.stricterClass(cls.name, way.fail_policy)}</p>
        ) : null}
      </section>
      {policy ? (
        <section className="sec">
          <div className="sec__h">
            <h2>{text.policies.inForce}</h2>
          </div>
          <p>
            <Now policy={policy} />
            {policy.hits && policy.hits.packets > 0 ? (
              <span className="dim">
                {' '}
                {text.policies.hits(formatNumber(policy.hits.packets), formatBytes(policy.hits.bytes))}
              </span>
            ) : null}
          </p>
          {matrix && inForce ? (
            <MatrixTable matrix={matrix} only={policy.id} narrow />
          ) : (
            <p className="dim">{text.policies.notInForce}</p>
          )}
        </section>
      ) : null}
    </>
  )
}
