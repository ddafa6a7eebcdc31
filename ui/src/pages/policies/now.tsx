// What a policy does at this moment.

import { StateWord, Tag } from '@/components/state'
import { Icon } from '@/components/icons'
import { useGet } from '@/api/query'
import { useText } from '@/text'
import { useNames } from './data'
import { devicesOf, type Policy } from './model'

export function Now({ policy }: { policy: Policy }) {
  const text = useText()
  const row = useGet('/policy/fail-matrix').data?.data.find((each) => each.policy_id === policy.id)
  const { groups } = useNames()
  const devices = devicesOf(policy, groups)?.length ?? null
  const name = policy.active_hop?.target
  switch (policy.status) {
    case 'pending':
      return (
        <Tag kind="pending">
          <Icon name="clock" />
          {text.policies.savedNotActive}
        </Tag>
      )
    case 'disabled':
      return <StateWord state="idle">{text.policies.disabled}</StateWord>
    case 'error':
      return <StateWord state="unknown">{text.policies.notInKernel}</StateWord>
    case 'blocked':
      return <StateWord state="blocked">{text.policies.blockedDevices(devices)}</StateWord>
    case 'fallback': {
      const none = (policy.effective ?? policy).hops.length === 0
      return (
        <StateWord state="direct">
          {none ? text.policies.directDevices(devices) : text.policies.fallback(devices)}
        </StateWord>
      )
    }
    case 'active':
    case 'degraded': {
      if (row?.current === 'direct')
        return (
          <StateWord state="direct">
            {name ? text.policies.chosen(name) : text.policies.directDevices(devices)}
          </StateWord>
        )
      if (row?.current === 'blocked')
        return <StateWord state="blocked">{text.policies.blockedDevices(devices)}</StateWord>
      if (!policy.hits?.packets) return <StateWord state="idle">{text.policies.noTraffic}</StateWord>
      const up = row?.hops.filter((hop) => hop.healthy).length ?? 0
      if (policy.status === 'degraded')
        return (
          <StateWord state="degraded">
            {text.policies.hopsOf(name ?? '-', up, row?.hops.length ?? 0)}
          </StateWord>
        )
      return <StateWord state="ok">{name ?? row?.hops.map((hop) => hop.target).join(' + ') ?? '-'}</StateWord>
    }
    default:
      return <>{policy.status}</>
  }
}
