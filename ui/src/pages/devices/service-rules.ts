// Which filter rules change when a service is switched for a device.

import type { Schemas } from '@/api/client'
import type { Service, ServiceRule } from './service-catalogue'

type Rule = Schemas['DnsFilterRule']
type Fields = Schemas['DnsFilterRuleInput']

/** For all devices, by a rule without a scope; for this one; for this one in part; or not. */
export type ServiceState = 'everyone' | 'on' | 'partly' | 'off'

export type RuleChange =
  | { kind: 'create'; fields: Fields }
  | { kind: 'replace'; rule: Rule; fields: Fields }
  | { kind: 'remove'; rule: Rule }

const ruleOf = (rules: readonly Rule[], { comment }: ServiceRule) =>
  rules.find((rule) => rule.comment === comment)

const isForAll = ({ scope }: Rule) =>
  scope.devices.length === 0 && scope.groups.length === 0 && scope.privacy_class === null

export function stateOf(service: Service, device: string, rules: readonly Rule[]): ServiceState {
  const found = service.rules.map((spec) => ruleOf(rules, spec)).filter((rule) => rule?.enabled === true)
  if (found.length === service.rules.length && found.every((rule) => isForAll(rule as Rule)))
    return 'everyone'
  const held = found.filter((rule) => isForAll(rule as Rule) || rule?.scope.devices.includes(device))
  return held.length === 0 ? 'off' : held.length === service.rules.length ? 'on' : 'partly'
}

/** The changes that switch a service on or off for a device. One rule serves all devices that have the service switched. */
export function changesOf(
  service: Service,
  device: string,
  on: boolean,
  rules: readonly Rule[],
): RuleChange[] {
  return service.rules.flatMap((spec) => {
    const change = on ? added(spec, device, ruleOf(rules, spec)) : removed(device, ruleOf(rules, spec))
    return change ? [change] : []
  })
}

function added(spec: ServiceRule, device: string, rule: Rule | undefined): RuleChange | null {
  if (!rule)
    return {
      kind: 'create',
      fields: {
        ...spec,
        scope: { devices: [device], groups: [], privacy_class: null },
        qtypes: [],
        enabled: true,
        schedule: null,
      },
    }
  const devices = rule.scope.devices
  const isHeld = isForAll(rule) || devices.includes(device)
  if (isHeld && rule.enabled) return null
  const scope = isHeld ? rule.scope : { ...rule.scope, devices: [...devices, device] }
  return { kind: 'replace', rule, fields: { ...fieldsOf(rule), scope, enabled: true } }
}

function removed(device: string, rule: Rule | undefined): RuleChange | null {
  if (!rule?.scope.devices.includes(device)) return null
  const scope = { ...rule.scope, devices: rule.scope.devices.filter((id) => id !== device) }
  // A rule without a scope is for all devices, so the rule of the last device goes.
  const isLast = scope.devices.length === 0 && scope.groups.length === 0 && scope.privacy_class === null
  return isLast ? { kind: 'remove', rule } : { kind: 'replace', rule, fields: { ...fieldsOf(rule), scope } }
}

function fieldsOf(rule: Rule): Fields {
  const { pattern, match, action, answer, qtypes, scope, enabled, comment, schedule } = rule
  return { pattern, match, action, answer, qtypes, scope, enabled, comment, schedule }
}
