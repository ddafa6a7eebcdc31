// What becomes of hosts that are no device: a setting, which the kernel enforces at once.

import { call, client } from '@/api/client'
import { useChange, useGet } from '@/api/query'
import { say, sayError } from '@/app/toasts'
import { Segmented } from '@/components/segmented'
import { useText } from '@/text'

export const SETTING = 'network.unknown_hosts'
export const TREATMENTS = ['direct', 'blocked', 'quarantine'] as const
export type Treatment = (typeof TREATMENTS)[number]

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
  const change = useChange((next: Treatment) =>
    call(
      client.PUT('/settings/{key}', {
        params: { path: { key: SETTING }, header: {} },
        body: { value: next },
      }),
    ),
  )
  if (value === undefined) return failed ? <p className="dim">{words.unknown}</p> : null
  return (
    <ul className="switches">
      <li>
        <div>
          <h3>{words.label}</h3>
          <p className="mid">{words.means[value]}</p>
        </div>
        <Segmented
          label={words.label}
          value={value}
          options={TREATMENTS.map((each) => [each, words.options[each] ?? each] as const)}
          needs="admin"
          disabled={change.isPending}
          onChange={(next) =>
            change.mutate(next, {
              onSuccess: ({ warnings }) => say(words.saved, warnings),
              onError: sayError,
            })
          }
        />
      </li>
    </ul>
  )
}
