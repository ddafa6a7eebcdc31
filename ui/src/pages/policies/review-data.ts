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
  useProfiles,
  useStatus,
} from './data'
import { editorsSince } from './editors'
import { effectsOf, opening } from './effects'
import { devicesOf, type Pending } from './model'
import { resolve } from './predict'

/** Entries of the audit log that are read. */
const ENTRIES = 500

export function useReview() {
  const text = useText()
  const status = useStatus().data?.data
  const pending = usePending()
  const dryRun = useDryRun({})
  const running = useMatrix(false)
  const later = useMatrix(true, EVALUATES_PENDING)
  const enforcement = useGet('/enforce')
  const enforced = enforcement.data?.data
  const waiting = useGet('/routing/pending')
  const audit = useGet('/audit', { query: { limit: ENTRIES, resource_type: 'routing_policy' } as never })
  const names = useNames()
  const profiles = useProfiles().data?.data
  const chains = useChains().data?.data
  const classes = useClasses().data?.data
  const find = <T extends { id: string; name: string }>(
    list: T[] | undefined,
    key: string | null | undefined,
  ) => (key ? list?.find((each) => each.id === key || each.name === key) : undefined)
  const editors = editorsSince(audit.data?.data ?? [], status?.applied_at ?? null)

  const resolved = ({ stored }: Pending) =>
    stored &&
    resolve(
      stored,
      find(profiles, stored.profile),
      find(chains, stored.chain),
      find(classes, stored.privacy_class)?.fail_policy_floor,
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
  const items = (pending ?? []).map((each) => {
    const found = effects(each)
    const ids = each.stored ? devicesOf(each.stored, names.groups) : null
    return {
      pending: each,
      effects: found,
      opens: opening(found),
      devices: ids?.map(names.device) ?? null,
      editors: editors.get(each.id) ?? [],
    }
  })
  /** All that the review rests on is there. */
  const ready =
    pending !== undefined &&
    running.data !== undefined &&
    dryRun.data !== undefined &&
    enforced !== undefined &&
    (!EVALUATES_PENDING || later.data !== undefined)
  const error = [running, dryRun, enforcement, waiting, later].find((read) => read.error)?.error ?? null
  return { status, items, dryRun, ready, error }
}

export type ReviewItem = ReturnType<typeof useReview>['items'][number]
