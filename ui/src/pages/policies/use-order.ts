// Saves moves of policies: each changed priority by a PUT of the whole policy. What the server answers decides; a move
// that fails is undone.

import { useState } from 'react'
import { useQueryClient } from '@tanstack/react-query'
import { call, client } from '@/api/client'
import { get, keyOf } from '@/api/query'
import { say, sayError } from '@/session/toasts'
import { useText } from '@/text'
import { ALL } from './data'
import { inOrder, inputOf, type Policy, type PolicyInput } from './model'
import { renumber } from './reorder'

/** Replaces a policy if nobody changed it meanwhile. */
export function put(policy: Policy, change: Partial<ReturnType<typeof inputOf>>) {
  return call(
    client.PUT('/routing/policies/{id}', {
      params: { path: { id: policy.id }, header: { 'If-Match': `"${policy.revision}"` } },
      body: { ...inputOf(policy), ...change } as PolicyInput,
    }),
  )
}

export function useOrder(policies: Policy[]) {
  const text = useText()
  const queries = useQueryClient()
  // The order that is being saved.
  const [wanted, setWanted] = useState<string[] | null>(null)

  const undo = async (done: { before: Policy; after: Policy }[]) => {
    for (const { before, after } of done.reverse())
      await put(after, { priority: before.priority }).catch(sayError)
  }

  const save = async (order: string[], block: string[], name: string) => {
    const changes = renumber(policies, order, block)
    if (changes.length === 0 || wanted) return
    setWanted(order)
    const done: { before: Policy; after: Policy }[] = []
    try {
      for (const { id, priority } of changes) {
        const before = policies.find((policy) => policy.id === id)
        if (!before) continue
        const { data } = await put(before, { priority })
        done.push({ before, after: data })
      }
      const answer = await get('/routing/policies', ALL)
      queries.setQueryData(keyOf('/routing/policies', ALL), answer)
      const order_ = inOrder(answer.data).map((policy) => policy.id)
      if (order_.join() === order.join()) say(text.policies.movedTo(name, order.indexOf(block[0] ?? '') + 1))
      else say(text.policies.notMoved(name))
    } catch (error) {
      await undo(done)
      say(text.policies.moveFailed(name))
      sayError(error as Error)
    }
    await queries.invalidateQueries({ queryKey: keyOf('/routing/policies', ALL) })
    // The next move need not wait for what else the page shows.
    setWanted(null)
    void queries.invalidateQueries()
  }

  const place = new Map((wanted ?? []).map((id, at) => [id, at]))
  const shown = wanted
    ? [...policies].sort((one, other) => (place.get(one.id) ?? 0) - (place.get(other.id) ?? 0))
    : policies
  return { shown, saving: wanted !== null, save }
}
