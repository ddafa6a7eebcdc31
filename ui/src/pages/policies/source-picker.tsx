// What a policy matches.

import { Select, TextField } from '@/components/fields'
import { HostAdopter } from '@/components/hosts/host-adopter'
import { PickMany } from '@/components/picker'
import { useText } from '@/text'
import { useNames } from './data'
import { valuesOf, type Draft } from './model'

interface Props {
  type: Draft['source_type']
  value: string
  errorOf: (path: string) => string | undefined
  onChange: (type: Draft['source_type'], value: string) => void
}

const TYPES = [
  'device',
  'device_group',
  'all',
  'subnet',
  'interface',
  'vlan',
  'destination',
  'domain',
] as const

export function SourcePicker({ type, value, errorOf, onChange }: Props) {
  const text = useText()
  const { devices, groups } = useNames()
  const picks = type === 'device' ? devices : type === 'device_group' ? groups : null
  return (
    <>
      <Select
        label={text.policies.sourceType}
        value={type}
        error={errorOf('source_type')}
        options={TYPES.map((each) => [each, text.policies.sourceTypes[each]] as const)}
        onChange={(next) => onChange(next, '')}
      />
      {picks ? (
        <>
          <PickMany
            key={type}
            label={text.policies.sourceTypes[type]}
            none={type === 'device' ? text.policies.noDevices : text.policies.noGroups}
            all={picks}
            chosen={valuesOf(value)}
            error={errorOf('source_value')}
            onChange={(ids) => onChange(type, ids.join(','))}
          />
          {type === 'device' ? (
            <HostAdopter onAdopted={(id) => onChange(type, [...valuesOf(value), id].join(','))} />
          ) : null}
        </>
      ) : type === 'all' ? null : (
        <TextField
          label={text.policies.sourceValue}
          hint={text.policies.sourceHints[type]}
          error={errorOf('source_value')}
          value={value}
          spellCheck={false}
          autoComplete="off"
          onChange={(next) => onChange(type, next)}
        />
      )}
    </>
  )
}
