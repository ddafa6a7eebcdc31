// Parts that the forms of devices, groups and trust classes share.

import type { ComponentType } from 'react'
import { useGet } from '@/api/query'
import type { Draft, Fields } from '@/components/draft'
import { Select } from '@/components/fields'
import type { FieldSpec } from '@/components/form-fields'
import { useText } from '@/text'

interface ChoiceProps {
  value: string | null
  error?: string
  onChange: (value: string | null) => void
}

function useNamed(
  path: '/trust-classes' | '/privacy-classes' | '/profiles',
): readonly { id: string; name: string }[] | undefined {
  return useGet(path, {}, { every: 60_000 }).data?.data as readonly { id: string; name: string }[] | undefined
}

export function TrustClassChoice({ value, error, onChange }: ChoiceProps) {
  const text = useText()
  const classes = useNamed('/trust-classes')
  return (
    <Select
      label={text.devices.trustClass}
      value={value ?? ''}
      error={error}
      hint={text.devices.trustClassHint}
      options={[
        ['', text.devices.inherited],
        ...(classes ?? []).map((each) => [each.name, each.name] as const),
      ]}
      onChange={(name) => onChange(name || null)}
    />
  )
}

/** A reference by id or by name: an object that is referred to by its id stays so. */
function byEither(list: readonly { id: string; name: string }[] | undefined, value: string | null) {
  return (list ?? []).map((each) => [value === each.id ? each.id : each.name, each.name] as const)
}

export function PrivacyClassChoice({ value, error, onChange }: ChoiceProps) {
  const text = useText()
  const classes = useNamed('/privacy-classes')
  return (
    <Select
      label={text.devices.privacyClass}
      value={value ?? ''}
      error={error}
      options={[['', text.devices.inherited], ...byEither(classes, value)]}
      onChange={(name) => onChange(name || null)}
    />
  )
}

export function ProfileChoice({ value, error, onChange }: ChoiceProps) {
  const text = useText()
  const profiles = useNamed('/profiles')
  return (
    <Select
      label={text.devices.profile}
      value={value ?? ''}
      error={error}
      hint={text.devices.profileHint}
      options={[['', text.devices.inherited], ...byEither(profiles, value)]}
      onChange={(name) => onChange(name || null)}
    />
  )
}

/** A field that names a class or a profile; without one it is inherited. */
export function inherited<T extends Fields>(
  { value, set }: Draft<T>,
  field: keyof T & string,
  Choice: ComponentType<ChoiceProps>,
): FieldSpec<T> {
  return {
    field,
    render: ({ error }) => (
      <Choice
        value={value[field] as string | null}
        error={error}
        onChange={(chosen) => set(field, chosen as T[typeof field])}
      />
    ),
  }
}
