// Parts that the forms of devices, groups and trust classes share.

import { useMemo, useState } from 'react'
import { useGet } from '@/api/query'
import { Select, TextField } from '@/components/fields'
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

interface PickerProps {
  label: string
  all: readonly { id: string; name: string; hint?: string }[]
  chosen: readonly string[]
  onChange: (chosen: string[]) => void
}

/** Things that are shown at once. */
const OFFERED = 100

/** Several of many things. Chosen ones come first; with very many, a part of the name narrows the list. */
export function Picker({ label, all, chosen, onChange }: PickerProps) {
  const text = useText()
  const [typed, setTyped] = useState('')
  // What was chosen when the form was opened stays on top, so that nothing moves under the pointer.
  const [first] = useState(() => new Set(chosen))
  const known = useMemo(() => new Set(all.map((each) => each.id)), [all])
  const chosenSet = new Set(chosen)
  const matching = useMemo(() => {
    const words = typed.toLowerCase()
    const list = all.filter((each) => `${each.name} ${each.hint ?? ''}`.toLowerCase().includes(words))
    return list.sort((one, other) => Number(first.has(other.id)) - Number(first.has(one.id)))
  }, [all, typed, first])
  const shown = matching.slice(0, OFFERED)
  return (
    <fieldset className="formrow wide">
      <legend className="med">
        {label} <span className="dim">{chosen.length}</span>
      </legend>
      {all.length > 12 ? (
        <TextField
          label={text.common.filter}
          value={typed}
          onChange={setTyped}
          hint={matching.length > OFFERED ? text.exception.narrow(OFFERED, matching.length) : undefined}
        />
      ) : null}
      <div className="picker">
        {shown.map((each) => (
          <label key={each.id} className="check">
            <input
              type="checkbox"
              checked={chosenSet.has(each.id)}
              onChange={(event) =>
                onChange(event.target.checked ? [...chosen, each.id] : chosen.filter((id) => id !== each.id))
              }
            />
            {each.name} {each.hint ? <span className="dim sm">{each.hint}</span> : null}
          </label>
        ))}
        {shown.length === 0 ? <p className="dim">{text.common.none}</p> : null}
        {chosen
          .filter((id) => !known.has(id))
          .map((id) => (
            <p key={id} className="dim sm mono">
              {id}
            </p>
          ))}
      </div>
    </fieldset>
  )
}

/** Words of a field with several values. */
export function wordsOf(typed: string): string[] {
  return typed.split(/[\s,]+/).filter(Boolean)
}
