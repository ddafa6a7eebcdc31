// Services that the device is kept from, and safe search, as switches. Each is made of filter rules.

import { call, client, type Answer, type Schemas } from '@/api/client'
import { useChange, useGet } from '@/api/query'
import { sayError } from '@/session/toasts'
import { useCaller } from '@/session/caller'
import { mayDo } from '@/session/roles'
import { Check } from '@/components/fields'
import { Loaded, Section } from '@/components/section'
import { useText } from '@/text'
import { SAFE_SEARCH, SERVICES, type Service } from './service-catalogue'
import { changesOf, stateOf, type RuleChange } from './service-rules'

type Rule = Schemas['DnsFilterRule']

export function DeviceServices({ device }: { device: Schemas['Device'] }) {
  const words = useText().devices.services
  const query = useGet('/dns/filter-rules')
  return (
    <Section title={words.title} hint={words.hint}>
      <Loaded query={query} lines={4}>
        {(rules) => (
          <>
            <Switches services={SAFE_SEARCH} device={device.id} rules={rules} />
            <h3>{words.blocked}</h3>
            <Switches services={SERVICES} device={device.id} rules={rules} />
            <p className="dim sm">{words.limits}</p>
          </>
        )}
      </Loaded>
    </Section>
  )
}

interface SwitchesProps {
  services: readonly Service[]
  device: string
  rules: readonly Rule[]
}

function Switches({ services, device, rules }: SwitchesProps) {
  const words = useText().devices.services
  const { role } = useCaller()
  const change = useChange(async ([first, ...rest]: readonly [RuleChange, ...RuleChange[]]) => {
    let answer: Answer<unknown> = await send(first)
    for (const each of rest) answer = await send(each)
    return answer
  })
  const turn = (service: Service, on: boolean) => {
    const [first, ...rest] = changesOf(service, device, on, rules)
    if (first) change.mutate([first, ...rest], { onError: sayError })
  }
  return (
    <div className="form form--2">
      {services.map((service) => {
        const state = stateOf(service, device, rules)
        const hint =
          state === 'everyone' ? words.everyone : state === 'partly' ? words.partly : words.hints[service.id]
        return (
          <Check
            key={service.id}
            label={service.name ?? words.names[service.id] ?? service.id}
            hint={hint}
            checked={state === 'on' || state === 'everyone'}
            disabled={state === 'everyone' || change.isPending || !mayDo(role, 'operator')}
            onChange={(on) => turn(service, on)}
          />
        )
      })}
    </div>
  )
}

function send(change: RuleChange): Promise<Answer<unknown>> {
  if (change.kind === 'create') return call(client.POST('/dns/filter-rules', { body: change.fields }))
  const params = { path: { id: change.rule.id } }
  return change.kind === 'remove'
    ? call(client.DELETE('/dns/filter-rules/{id}', { params }))
    : call(client.PUT('/dns/filter-rules/{id}', { params, body: change.fields }))
}
