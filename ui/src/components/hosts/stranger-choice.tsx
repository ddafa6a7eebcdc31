// What becomes of hosts that are no device: a setting, which the kernel enforces at once.

import { useState } from 'react'
import { call, client } from '@/api/client'
import { useGet } from '@/api/query'
import { Link } from '@/session/link'
import { LinkButton } from '@/components/link-button'
import { Segmented } from '@/components/segmented'
import { useAction } from '@/components/action'
import { useText } from '@/text'

export const SETTING = 'network.unknown_hosts'
export const TREATMENTS = ['direct', 'blocked', 'quarantine'] as const
export type Treatment = (typeof TREATMENTS)[number]

/** What one can choose. By a policy: the setting is `direct`, and a policy for all traffic decides. */
export const CHOICES = [...TREATMENTS, 'policy'] as const
export type Choice = (typeof CHOICES)[number]

/** The setting of a choice. */
export const settingOf = (choice: Choice): Treatment => (choice === 'policy' ? 'direct' : choice)

/** Where the form of a policy for all traffic is. */
export const POLICY_FORM = { to: '/policies/new', search: { source: 'all' } }

/** The policy for all traffic, which holds for hosts that are no device, too. */
export function usePolicyForAll() {
  const policies = useGet('/routing/policies').data?.data
  return policies?.find((each) => each.enabled && each.source_type === 'all')
}

/** The treatment of hosts that are no device; undefined while it is not known. */
export function useTreatment(): { value: Treatment | undefined; failed: boolean } {
  const query = useGet('/settings/{key}', { path: { key: SETTING } })
  return {
    value: TREATMENTS.find((each) => each === query.data?.data.value),
    failed: query.error !== null,
  }
}

/** The choice as a switch that changes it at once. */
export function StrangerSwitch() {
  const text = useText()
  const words = text.hosts.stranger
  const { value, failed } = useTreatment()
  const policy = usePolicyForAll()
  const [chosen, setChosen] = useState<Choice>()
  const change = useAction(
    (next: Treatment) =>
      call(
        client.PUT('/settings/{key}', {
          params: { path: { key: SETTING }, header: {} },
          body: { value: next },
        }),
      ),
    () => words.saved,
  )
  if (value === undefined) return failed ? <p className="dim">{words.unknown}</p> : null
  const shown = value !== 'direct' ? value : (chosen ?? (policy ? 'policy' : 'direct'))
  return (
    <ul className="switches">
      <li>
        <div>
          <h3>{words.label}</h3>
          <p className="mid">{words.means[shown]}</p>
          {shown !== 'policy' ? null : policy ? (
            <p className="mid">
              {words.written}
              <Link to={`/policies/${policy.id}`}>{policy.name}</Link>
            </p>
          ) : (
            <LinkButton icon="plus" needs="operator" {...POLICY_FORM}>
              {words.write}
            </LinkButton>
          )}
        </div>
        <Segmented
          label={words.label}
          value={shown}
          options={CHOICES.map((each) => [each, words.options[each]] as const)}
          needs="admin"
          disabled={change.busy}
          onChange={(next) => {
            setChosen(settingOf(next) === 'direct' ? next : undefined)
            if (settingOf(next) === value) return
            change.run(settingOf(next))
          }}
        />
      </li>
    </ul>
  )
}
