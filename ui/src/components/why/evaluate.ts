// The path of a packet, as the policy engine of the daemon decides it.

import { useQuery, type UseQueryResult } from '@tanstack/react-query'
import { call, client, type Answer, type Schemas } from '@/api/client'
import { live } from '@/api/live'
import type { State } from '@/components/state'
import type { PacketQuery } from './query'

export type Evaluation = Schemas['Evaluation']
export type Family = Schemas['FamilyVerdict']

export async function evaluate(query: PacketQuery): Promise<Answer<Evaluation>> {
  return call(client.POST('/policy/evaluate', { body: query as Schemas['RequestInput'] }))
}

/** The answer to a query, read again while the page is open. */
export function useEvaluation(query: PacketQuery): UseQueryResult<Answer<Evaluation>> {
  return useQuery({
    queryKey: ['/policy/evaluate', query],
    queryFn: () => evaluate(query),
    // What was decided does not change any more.
    refetchInterval: (state) => live.pause(query.at === undefined && 5000, state.state.fetchFailureCount),
    placeholderData: (before, old) => {
      const last = old?.queryKey[1] as PacketQuery | undefined
      return last?.device_id === query.device_id && last.at === query.at ? before : undefined
    },
  })
}

/** The state of a decision. A decision that is not known is shown as unknown. */
export function decisionState(decision: string): State {
  if (decision === 'tunnel') return 'ok'
  if (decision === 'block') return 'blocked'
  if (decision === 'direct') return 'direct'
  return 'unknown'
}

/** The families that differ are shown one by one, else the first stands for both. */
export function familiesOf(evaluation: Evaluation): (readonly [name: string, family: Family])[] {
  const { ipv4, ipv6 } = evaluation.families
  const both = [...(ipv4 ? [['IPv4', ipv4] as const] : []), ...(ipv6 ? [['IPv6', ipv6] as const] : [])]
  if (ipv4 && ipv6 && ipv4.decision === ipv6.decision && ipv4.via === ipv6.via && ipv4.reason === ipv6.reason)
    return [['', ipv4] as const]
  return both
}

/** Name and kind of an egress: `vpn:wg-a`. */
export function egressOf(via: string): { name: string; kind?: string } {
  const [kind, ...rest] = via.split(':')
  return rest.length > 0 ? { name: rest.join(':'), kind } : { name: via }
}
