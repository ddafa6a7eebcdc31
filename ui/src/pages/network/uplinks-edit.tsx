// The editor of the uplinks. The list is saved as a whole.

import type { Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { useTitle } from '@/session/crumb'
import { useGo } from '@/session/link'
import { Page } from '@/components/answer'
import { Button } from '@/components/button'
import type { Edit } from '@/components/edit'
import { EditForm, type Values } from '@/components/form'
import { FormFields, type FieldTexts } from '@/components/form-fields'
import { numbersOf, withoutNumber } from '@/components/numbered'
import { resource, useObjectEdit } from '@/components/resource'
import { Loaded } from '@/components/section'
import { useText, type Text } from '@/text'
import { PROBE_NUMBERS, uplinksForm, uplinksInput, withUplink } from './uplinks-form'

export default function EditUplinks() {
  const text = useText()
  const words = text.network.uplinks.editor
  const uplinks = useGet('/system/wan-uplinks', {}, { every: false })
  useTitle(text.network.uplinks.edit)
  return (
    <Page question={words.question} answer={words.answer}>
      <Loaded query={uplinks} lines={8}>
        {(read) => <Form uplinks={read} etag={uplinks.data?.etag ?? null} />}
      </Loaded>
    </Page>
  )
}

const wanUplinks = resource('/system/wan-uplinks', {
  key: 'wan',
  fields: (uplinks): Values => (uplinks ? uplinksForm(uplinks) : {}),
  body: uplinksInput,
})

function Form({ uplinks, etag }: { uplinks: Schemas['WanUplinks']; etag: string | null }) {
  const text = useText()
  const go = useGo()
  const words = text.network.uplinks.editor
  const edit = useObjectEdit(
    wanUplinks,
    { data: uplinks, etag },
    { key: 'wan.uplinks', onSaved: () => go('/network') },
  )
  const numbers = numbersOf(edit.draft.value, 'uplinks')
  return (
    <EditForm edit={edit} onCancel={() => go('/network')}>
      <fieldset className="part">
        <legend>{words.general}</legend>
        <FormFields
          draft={edit.draft}
          error={edit.problems}
          texts={
            { wan_failover_mode: words.fields.mode, wan_balance: words.fields.balance } as FieldTexts<Values>
          }
          fields={[
            { field: 'wan_failover_mode', kind: 'select', options: Object.entries(words.modes) },
            { field: 'wan_balance', kind: 'check' },
          ]}
        />
      </fieldset>
      {numbers.map((number) => (
        <UplinkFields key={number} edit={edit} number={number} />
      ))}
      <div>
        <Button size="small" icon="plus" onClick={() => edit.draft.replace(withUplink(edit.draft.value))}>
          {words.add}
        </Button>
      </div>
    </EditForm>
  )
}

const OWN = [
  'name',
  'interface',
  'gateway',
  'priority',
  'weight',
  'enabled',
  'balance',
  'metered',
  'failover_states',
  'failback_states',
] as const

/** The texts of the fields of an uplink, under their paths. */
function textsOf(text: Text, at: string): FieldTexts<Values> {
  const fields = text.network.uplinks.editor.uplinkFields
  return Object.fromEntries([
    ...OWN.map((field) => [`${at}.${field}`, fields[field]]),
    ...(['targets', 'method', ...PROBE_NUMBERS] as const).map((field) => [
      `${at}.probe.${field}`,
      fields[field],
    ]),
  ])
}

function UplinkFields({ edit, number }: { edit: Edit<Values>; number: number }) {
  const text = useText()
  const words = text.network.uplinks.editor
  const { draft, problems } = edit
  const interfaces = useGet('/interfaces', {}, { every: false }).data?.data ?? []
  const at = `uplinks[${number}]`
  const texts = textsOf(text, at)
  const names = interfaces
    .filter((each) => each.role !== 'loopback' && each.role !== 'tunnel')
    .map((each) => [each.name, each.name] as const)
  return (
    <fieldset className="part">
      <legend>{words.uplink(number + 1, String(draft.value[`${at}.name`] ?? ''))}</legend>
      <FormFields
        draft={draft}
        error={problems}
        texts={texts}
        fields={[
          { field: `${at}.name` },
          { field: `${at}.interface`, kind: 'select', options: [['', '-'], ...names] },
          { field: `${at}.gateway`, required: true },
          { field: `${at}.priority`, kind: 'number', required: true, min: 0 },
          { field: `${at}.enabled`, kind: 'check' },
          { field: `${at}.metered`, kind: 'check' },
          { field: `${at}.balance`, kind: 'check' },
          { field: `${at}.weight`, kind: 'number', required: true, min: 1, max: 256 },
          { field: `${at}.failover_states`, kind: 'check' },
          { field: `${at}.failback_states`, kind: 'check' },
        ]}
      />
      <details className="probes">
        <summary>{words.probe}</summary>
        <FormFields
          draft={draft}
          error={problems}
          texts={texts}
          fields={[
            { field: `${at}.probe.method`, kind: 'select', options: Object.entries(words.methods) },
            { field: `${at}.probe.targets`, required: true },
            ...PROBE_NUMBERS.map((field) => ({
              field: `${at}.probe.${field}`,
              kind: 'number' as const,
              required: true,
              min: field.startsWith('loss') ? 0 : 1,
              max: field.startsWith('loss') ? 100 : undefined,
            })),
          ]}
        />
      </details>
      <div>
        <Button size="small" onClick={() => draft.replace(withoutNumber(draft.value, 'uplinks', number))}>
          {words.remove(number + 1)}
        </Button>
      </div>
    </fieldset>
  )
}
