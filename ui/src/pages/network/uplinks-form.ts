// The list of uplinks as a form holds it: one object in many numbered fields.

import type { Schemas } from '@/api/client'
import { numberOf, textOf, wordsOf, type Values } from '@/components/form'
import { nextNumber, numbersOf } from '@/components/numbered'

type Wan = Schemas['Wan']

const DEFAULTS: Schemas['Probe'] = {
  targets: ['1.1.1.1', '9.9.9.9', '8.8.8.8'],
  method: 'icmp',
  interval_sec: 5,
  timeout_sec: 2,
  fail: 3,
  success: 5,
  reliability: 1,
  loss_fail_pct: 20,
  loss_ok_pct: 10,
  latency_fail_ms: 500,
  latency_ok_ms: 200,
}

export const PROBE_NUMBERS = [
  'interval_sec',
  'timeout_sec',
  'fail',
  'success',
  'reliability',
  'loss_fail_pct',
  'loss_ok_pct',
  'latency_fail_ms',
  'latency_ok_ms',
] as const

export function withUplink(values: Values, uplink?: Wan): Values {
  const at = `uplinks[${nextNumber(values, 'uplinks')}]`
  const probe = uplink?.probe ?? DEFAULTS
  const next: Values = {
    ...values,
    [`${at}.name`]: uplink?.name ?? '',
    [`${at}.interface`]: uplink?.interface ?? '',
    [`${at}.gateway`]: uplink?.gateway ?? 'dhcp',
    [`${at}.priority`]: String(uplink?.priority ?? 100),
    [`${at}.weight`]: String(uplink?.weight ?? 1),
    [`${at}.enabled`]: uplink?.enabled ?? true,
    [`${at}.balance`]: uplink?.balance ?? true,
    [`${at}.metered`]: uplink?.metered ?? false,
    [`${at}.failover_states`]: uplink?.failover_states ?? true,
    [`${at}.failback_states`]: uplink?.failback_states ?? false,
    [`${at}.probe.targets`]: probe.targets.join(', '),
    [`${at}.probe.method`]: probe.method,
  }
  for (const field of PROBE_NUMBERS) next[`${at}.probe.${field}`] = String(probe[field])
  return next
}

export function uplinksForm(uplinks: Schemas['WanUplinks']): Values {
  const base: Values = { wan_failover_mode: uplinks.wan_failover_mode, wan_balance: uplinks.wan_balance }
  return uplinks.uplinks.reduce<Values>((values, uplink) => withUplink(values, uplink), base)
}

export function uplinksInput(values: Values): Schemas['WanUplinksRequestInput'] {
  return {
    wan_failover_mode: String(values.wan_failover_mode) as Schemas['FailoverModeInput'],
    wan_balance: values.wan_balance === true,
    uplinks: numbersOf(values, 'uplinks').map((number) => uplinkInput(values, `uplinks[${number}]`)),
  }
}

function uplinkInput(values: Values, at: string): Schemas['WanInput'] {
  const value = (field: string) => values[`${at}.${field}`] ?? ''
  const number = (field: (typeof PROBE_NUMBERS)[number]) =>
    numberOf(value(`probe.${field}`)) ?? DEFAULTS[field]
  return {
    name: String(value('name')).trim(),
    interface: String(value('interface')).trim(),
    gateway: textOf(value('gateway')) ?? 'dhcp',
    priority: numberOf(value('priority')) ?? 100,
    weight: numberOf(value('weight')) ?? 1,
    enabled: value('enabled') === true,
    balance: value('balance') === true,
    metered: value('metered') === true,
    failover_states: value('failover_states') === true,
    failback_states: value('failback_states') === true,
    probe: {
      targets: wordsOf(value('probe.targets')),
      method: String(value('probe.method')) as Schemas['ProbeMethodInput'],
      interval_sec: number('interval_sec'),
      timeout_sec: number('timeout_sec'),
      fail: number('fail'),
      success: number('success'),
      reliability: number('reliability'),
      loss_fail_pct: number('loss_fail_pct'),
      loss_ok_pct: number('loss_ok_pct'),
      latency_fail_ms: number('latency_fail_ms'),
      latency_ok_ms: number('latency_ok_ms'),
    },
  }
}
