// What a policy matches.

import { Select, TextField } from '@/components/fields'
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
        options={TYPES.map((each) => [each, text.policies.sourceTypes[each] ?? each] as const)}
        onChange={(next) => onChange(next, '')}
      />
      {picks ? (
        <Picks
          legend={text.policies.sourceTypes[type] ?? type}
          none={type === 'device' ? text.policies.noDevices : text.policies.noGroups}
          all={picks}
          picked={valuesOf(value)}
          error={errorOf('source_value')}
          onChange={(ids) => onChange(type, ids.join(','))}
        />
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

interface PicksProps {
  legend: string
  none: string
  all: { id: string; name: string }[]
  picked: string[]
  error: string | undefined
  onChange: (ids: string[]) => void
}

/** Several among many, by check boxes. Ids that nothing has any more stay until they are cleared. */
function Picks({ legend, none, all, picked, error, onChange }: PicksProps) {
  const lost = picked.filter((id) => !all.some((each) => each.id === id))
  const options = [...all, ...lost.map((id) => ({ id, name: id }))]
  return (
    <fieldset className="picks">
      <legend className="med">{legend}</legend>
      {options.length === 0 ? <p className="dim">{none}</p> : null}
      <div className="picks__list">
        {options.map(({ id, name }) => (
          <label key={id} className="check">
            <input
              type="checkbox"
              checked={picked.includes(id)}
              onChange={(event) =>
                onChange(event.target.checked ? [...picked, id] : picked.filter((each) => each !== id))
              }
            />
            {name}
          </label>
        ))}
      </div>
      {error ? <p className="formrow__error">{error}</p> : null}
    </fieldset>
  )
}
