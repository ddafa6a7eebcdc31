// A bridge as a form, for new ones and for changes.

import type { Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import type { Edit } from '@/components/edit'
import { numberOf } from '@/components/form'
import { FormFields } from '@/components/form-fields'
import { resource } from '@/components/resource'
import { useText } from '@/text'

function bridgeForm(bridge: Schemas['Bridge'] | null) {
  return {
    name: bridge?.name ?? '',
    enabled: bridge?.enabled ?? true,
    kind: (bridge?.kind ?? 'transport') as string,
    transport_type: (bridge?.transport?.type ?? 'udp2tcp') as string,
    transport_address: bridge?.transport?.address ?? '',
    transport_port: bridge?.transport ? String(bridge.transport.port) : '',
    source_type: (bridge?.source?.type ?? 'interface') as string,
    source_value: bridge?.source?.value ?? '',
    target_type: (bridge?.target?.type ?? 'vpn') as string,
    target: bridge?.target?.target ?? '',
  }
}

type BridgeForm = ReturnType<typeof bridgeForm>

export const allBridges = resource('/bridges/{id}', {
  key: 'bridge',
  type: 'bridge',
  fields: bridgeForm,
  body: (form, stored) => ({ ...stored, ...bridgeInput(form) }),
})

function bridgeInput(form: BridgeForm): Schemas['BridgeInput'] {
  const transport = form.kind === 'transport'
  return {
    name: form.name.trim(),
    enabled: form.enabled,
    kind: form.kind as Schemas['BridgeKindInput'],
    nat: true,
    transport: transport
      ? {
          type: form.transport_type as Schemas['TransportTypeInput'],
          address: form.transport_address.trim(),
          port: numberOf(form.transport_port) ?? 0,
        }
      : null,
    source: transport
      ? null
      : { type: form.source_type as Schemas['BridgeSourceTypeInput'], value: form.source_value.trim() },
    target: transport
      ? null
      : { type: form.target_type as Schemas['HopTypeInput'], target: form.target.trim() },
  }
}

export function BridgeFields({ edit }: { edit: Edit<BridgeForm> }) {
  const text = useText()
  const words = text.paths.bridges
  const tunnels = useGet('/tunnels', {}, { every: false }).data?.data ?? []
  const form = edit.draft.value
  const transport = form.kind === 'transport'
  const intoTunnel = form.target_type === 'vpn'
  return (
    <FormFields
      draft={edit.draft}
      texts={words.fields}
      error={edit.problems}
      fields={[
        { field: 'name', required: true },
        { field: 'kind', kind: 'select', options: Object.entries(words.kinds) },
        transport && {
          field: 'transport_type',
          path: 'transport.type',
          kind: 'select',
          options: Object.entries(words.transports),
        },
        transport && { field: 'transport_address', path: 'transport.address', required: true },
        transport && {
          field: 'transport_port',
          path: 'transport.port',
          kind: 'number',
          required: true,
          min: 1,
          max: 65535,
        },
        !transport && {
          field: 'source_type',
          path: 'source.type',
          kind: 'select',
          options: Object.entries(words.sources),
        },
        !transport && { field: 'source_value', path: 'source.value', required: true },
        !transport && {
          field: 'target_type',
          path: 'target.type',
          kind: 'select',
          options: Object.entries(words.targets),
        },
        !transport &&
          (intoTunnel && tunnels.length > 0
            ? {
                field: 'target',
                path: 'target.target',
                kind: 'select',
                options: [['', '-'], ...tunnels.map((each) => [each.name, each.name] as const)],
              }
            : { field: 'target', path: 'target.target', required: true }),
        { field: 'enabled', kind: 'check' },
      ]}
    />
  )
}
