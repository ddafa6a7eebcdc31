// What the review of pending changes reads.

import { useGet } from '@/api/query'
import { useText } from '@/text'
import {
  EVALUATES_PENDING,
  useChains,
  useClasses,
  useDryRun,
  useMatrix,
  useNames,
  usePending,
  usePolicies,
  useProfiles,
  useStatus,
} from './data'
import { editsSince, isSame } from './discard'
import { effectsOf, opening } from './effects'
import { devicesOf, fieldsOf, type Pending } from './model'
import { resolve } from './predict'

/** Entries of the audit log that are read. */
const ENTRIES = 500

export function useReview() {
  const text = useText()
  const status = useStatus().data?.data
  const pending = usePending()
  const policies = usePolicies().data?.data
  const dryRun = useDryRun({})
  const running = useMatrix(false)
  const later = useMatrix(true, EVALUATES_PENDING)
  const enforced = useGet('/enforce').data?.data
  const audit = useGet('/audit', { query: { limit: ENTRIES, resource_type: 'routing_policy' } as never })
  const names = useNames()
  const profiles = useProfiles().data?.data
  const chains = useChains().data?.data
  const classes = useClasses().data?.data
  const find = <T extends { id: string; name: string }>(
    list: T[] | undefined,
    key: string | null | undefined,
  ) => (key ? list?.find((each) => each.id === key || each.name === key) : undefined)
  const entries = audit.data?.data
  // Older edits would be missing if the log has more entries than were read.
  const oldest = entries?.[entries.length - 1]
  const whole =
    entries !== undefined &&
    (entries.length < ENTRIES || Date.parse(oldest?.timestamp ?? '') <= Date.parse(status?.applied_at ?? ''))
  const edits = whole ? editsSince(entries, status?.applied_at ?? null) : null

  const resolved = ({ stored }: Pending) =>
    stored &&
    resolve(
      stored,
      find(profiles, stored.profile),
      find(chains, stored.chain),
      find(classes, stored.privacy_class)?.fail_policy_floor,
    )
  const waiting = (pending ?? []).filter(
    (each) => each.kind !== 'edited' || !isSame(fieldsOf(each).length, edits?.get(each.id)),
  )
  const effects = (each: Pending) =>
    effectsOf(each, {
      running: running.data?.data,
      later: EVALUATES_PENDING ? later.data?.data : undefined,
      dryRun: dryRun.data?.data,
      unmatched: enforced?.unmatched ?? 'direct',
      resolved,
      text,
    })
  // Policies that were not edited change too, by their profile, chain or privacy class.
  const fed = (policies ?? [])
    .filter((policy) => policy.enabled && !waiting.some((each) => each.id === policy.id))
    .map((stored): Pending => {
      const applied = enforced?.policies.find((each) => each.id === stored.id)
      return { id: stored.id, name: stored.name, kind: 'edited', stored, applied }
    })
    .filter(
      (each) =>
        status?.pending_changes === true &&
        each.applied !== undefined &&
        (fieldsOf(each).length > 0 || (EVALUATES_PENDING && later.data && effects(each).length > 0)),
    )
  const items = [...waiting, ...fed].map((each) => {
    const found = effects(each)
    const ids = each.stored ? devicesOf(each.stored, names.groups) : null
    return {
      pending: each,
      effects: found,
      opens: opening(found),
      devices: ids?.map(names.device) ?? null,
      edit: edits?.get(each.id),
    }
  })
  /** All that the review rests on is there. */
  const ready =
    pending !== undefined &&
    running.data !== undefined &&
    dryRun.data !== undefined &&
    enforced !== undefined &&
    (!EVALUATES_PENDING || later.data !== undefined)
  return { status, items, dryRun, ready, edits, error: running.error ?? dryRun.error }
}

export type ReviewItem = ReturnType<typeof useReview>['items'][number]
