// One policy: its form, its JSON, and what it does.

import { useParams } from '@tanstack/react-router'
import { useGet } from '@/api/query'
import { useTitle } from '@/session/crumb'
import { useSearchParams, type Search } from '@/session/search-params'
import { Failure, Skeleton } from '@/components/section'
import { useText } from '@/text'
import { usePolicies } from './data'
import { EMPTY, inOrder, inputOf, type Draft, type Policy } from './model'
import { PolicyEditor } from './policy-editor'

export default function PolicyPage() {
  const { id } = useParams({ strict: false }) as { id?: string }
  return id === undefined ? <NewPage /> : <Existing key={id} id={id} />
}

function Existing({ id }: { id: string }) {
  const query = useGet('/routing/policies/{id}', { path: { id } })
  const policy = query.data?.data
  useTitle(policy?.name)
  if (!policy)
    return query.error ? (
      <Failure error={query.error} retry={() => void query.refetch()} />
    ) : (
      <Skeleton lines={6} />
    )
  return (
    <PolicyEditor
      key={policy.id}
      policy={policy}
      start={{ value: inputOf(policy), etag: query.data?.etag ?? null }}
    />
  )
}

function NewPage() {
  const text = useText()
  const [search] = useSearchParams()
  const policies = usePolicies()
  useTitle(text.policies.create)
  if (!policies.data) return policies.error ? <Failure error={policies.error} /> : <Skeleton lines={6} />
  const list = policies.data.data
  const from = list.find((policy) => policy.id === search.from)
  const device = search.device
  const start: Draft = from
    ? { ...inputOf(from), name: `${from.name}-2`, priority: from.priority + 1 }
    : search.source === 'all'
      ? { ...EMPTY, source_type: 'all' }
      : (destinationOf(search, list) ?? { ...EMPTY, priority: free(list), source_value: device ?? '' })
  return (
    <PolicyEditor
      key={search.from ?? `${search.source ?? ''} ${search.value ?? ''}`}
      policy={null}
      start={{ value: start, etag: null }}
    />
  )
}

/** A policy for a destination comes before those that would take its traffic. */
function destinationOf({ source, value, name }: Search, list: Policy[]): Draft | null {
  if ((source !== 'domain' && source !== 'destination') || !value) return null
  const priority = Math.max(0, (inOrder(list)[0]?.priority ?? 20) - 10)
  return { ...EMPTY, source_type: source, source_value: value, name: name ?? '', priority }
}

/** The priority behind the last policy that is no catch-all. */
function free(list: Policy[]): number {
  const ordered = inOrder(list).filter((policy) => policy.source_type !== 'all')
  const last = ordered[ordered.length - 1]?.priority ?? 0
  const next = Math.floor(last / 10) * 10 + 10
  const all = list.find((policy) => policy.source_type === 'all')?.priority ?? 1000
  return next < all ? next : last
}
