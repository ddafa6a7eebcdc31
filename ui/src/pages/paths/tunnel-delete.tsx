// The deletion of a tunnel, and another tunnel in its place.

import { useState } from 'react'
import { call, client, type Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import type { Deletion } from '@/components/object-page'
import { PickOne } from '@/components/picker'
import { useText } from '@/text'
import { isHop, replaced } from './tunnel-hops'

type Tunnel = Schemas['Tunnel']

/** Kinds of objects whose hops get the other tunnel. */
const HOPS = ['routing_policies', 'profiles', 'chains']

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
    fate: ({ collection }) => (by && HOPS.includes(collection) ? detail.replacedBy(by) : null),
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
