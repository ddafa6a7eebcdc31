// The deletion of a tunnel: what becomes of each object that uses it, and another tunnel in its place.

import { useState } from 'react'
import { call, client, type Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import type { Deletion } from '@/components/object-page'
import { PickOne } from '@/components/picker'
import type { Referring } from '@/components/referring'
import { useText } from '@/text'
import { isHop, lossOf, replaced } from './tunnel-loss'

type Tunnel = Schemas['Tunnel']

/** Returns what `ObjectPage` needs to delete a tunnel. */
export function useTunnelDeletion(tunnel: Tunnel | undefined): Deletion | null {
  const text = useText()
  const { detail } = text.paths
  const [by, setBy] = useState('')
  const once = { every: 60_000 }
  const policies = useGet('/routing/policies', {}, once).data?.data ?? []
  const profiles = useGet('/profiles', {}, once).data?.data ?? []
  const chains = useGet('/chains', {}, once).data?.data ?? []
  const tunnels = useGet('/tunnels').data?.data ?? []
  if (!tunnel) return null
  const { id, name } = tunnel
  const uses = (each: { hops: readonly Schemas['Hop'][] }) => each.hops.some((hop) => isHop(hop, tunnel))
  const named = (collection: string, list: readonly { id: string; name: string; hops: Schemas['Hop'][] }[]) =>
    list.filter(uses).map(({ id, name }) => ({ collection, id, name }))
  const objects = [
    ...named('routing_policies', policies),
    ...named('profiles', profiles),
    ...named('chains', chains),
  ]
  const fate = ({ collection, id }: Referring): string => {
    const policy = policies.find((each) => each.id === id)
    const inHops = [...policies, ...profiles, ...chains].find((each) => each.id === id)
    if (!inHops || !uses(inHops)) return detail.fates.member
    if (by) return detail.fates.replaced(by)
    if (collection !== 'routing_policies' || !policy) return detail.fates.policies
    const loss = lossOf({ ...policy, fail_policy: policy.fail_policy ?? 'fail-closed' }, tunnel)
    return loss.then === 'others' ? detail.fates.others(loss.hops.join(', ')) : detail.fates[loss.then]
  }
  const replace = async () => {
    const change = (each: { id: string; hops: readonly Schemas['Hop'][] }) => ({
      ...each,
      hops: replaced(each.hops, tunnel, by),
    })
    const resources = {
      routing_policies: policies.filter(uses).map(change),
      profiles: profiles.filter(uses).map(change),
      chains: chains.filter(uses).map(change),
    }
    const body = { resources } as unknown as Schemas['PlanInputInput']
    await call(client.POST('/apply', { body }))
  }
  return {
    name,
    title: detail.deleteTitle(name),
    consequence: detail.deleteConsequence,
    subject: { type: 'tunnel', id },
    objects,
    fate,
    mayForce: true,
    remove: async (force) => {
      if (by) await replace()
      return call(
        client.DELETE('/tunnels/{id}', { params: { path: { id }, query: force ? { force: true } : {} } }),
      )
    },
    back: '/paths',
    draft: `tunnel.${id}`,
    about: (
      <PickOne
        label={detail.replaceBy}
        hint={detail.replaceByHint}
        value={by}
        options={[
          ['', detail.replaceByNone],
          ...tunnels.filter((each) => each.id !== id).map((each) => [each.name, each.name] as const),
        ]}
        onChange={setBy}
      />
    ),
  }
}
