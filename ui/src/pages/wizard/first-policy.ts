// The policy of the first device: an existing one is changed, else one is made before all others.

import type { Schemas } from '@/api/client'

type Policy = Schemas['RoutingPolicy']

/** The policy whose only source is this device. */
export function policyOf(
  policies: Policy[],
  device: Pick<Schemas['Device'], 'id' | 'name' | 'mac' | 'macs'>,
): Policy | undefined {
  const names = [device.id, device.name, device.mac, ...device.macs]
  return policies.find(
    (policy) => policy.source_type === 'device' && names.includes(policy.source_value.trim()),
  )
}

/** A priority that wins over all others; the lowest number wins. */
export function firstPriority(policies: Policy[]): number {
  if (policies.length === 0) return 10
  const lowest = Math.min(...policies.map((policy) => policy.priority))
  return lowest > 10 ? lowest - 10 : Math.max(0, lowest - 1)
}

/** What the policy does if its hops are down; a policy that does not say so is fail-closed unless a profile says it. */
export function failureOf(policy: Policy | undefined): Schemas['FailPolicy'] {
  return policy?.effective?.fail_policy ?? policy?.fail_policy ?? 'fail-closed'
}
