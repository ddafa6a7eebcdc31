// One preset: its use, and its template.

import type { Schemas } from '@/api/client'
import { useGo } from '@/session/link'
import { EditForm } from '@/components/form'
import { FieldList } from '@/components/form-fields'
import { ObjectRoute } from '@/components/object-form'
import { ObjectPage } from '@/components/object-page'
import { deletionOf, resource, useObjectEdit, type Stored } from '@/components/resource'
import { Section } from '@/components/section'
import { Tag } from '@/components/state'
import { useText } from '@/text'
import { Back } from './back'
import { kindOf, NEW_PRESET, presetForm, presetInput, templateError } from './preset-model'
import type { Preset } from './preset-model'
import { PresetUse } from './preset-use'

const presets = resource('/presets/{id}', {
  key: 'preset',
  fields: (preset: Preset | null) => (preset ? presetForm(preset) : NEW_PRESET),
  body: presetInput,
})

export default function PresetPage() {
  const words = useText().presets
  return (
    <ObjectRoute resource={presets} newTitle={words.createTitle}>
      {(stored) => (stored ? <StoredPreset stored={stored} /> : <NewPreset />)}
    </ObjectRoute>
  )
}

function NewPreset() {
  const words = useText().presets
  return (
    <ObjectPage question={words.question} answer={words.createTitle}>
      <Section title={words.template} hint={words.templateHint}>
        <Form stored={null} />
      </Section>
    </ObjectPage>
  )
}

function StoredPreset({ stored }: { stored: Stored<Preset> }) {
  const text = useText()
  const words = text.presets
  const preset = stored.data
  return (
    <ObjectPage
      question={words.useQuestion(preset.name)}
      answer={
        <>
          {words.useAnswer[kindOf(preset)]} {preset.builtin ? <Tag>{text.policies.builtin}</Tag> : null}
        </>
      }
      deletion={deletionOf(presets, preset.builtin ? null : preset, {
        title: text.policies.deleteTitle,
        consequence: words.deleteMeans,
        action: words.deleteAction,
        back: '/policies/presets',
      })}
    >
      <PresetUse preset={preset} />
      <Section title={words.template} hint={preset.builtin ? words.builtinHint : words.templateHint}>
        <Form stored={stored} />
      </Section>
    </ObjectPage>
  )
}

const CATEGORIES: Schemas['PresetCategory'][] = ['streaming', 'gaming', 'work', 'iot', 'privacy']

function Form({ stored }: { stored: Stored<Preset> | null }) {
  const text = useText()
  const words = text.presets
  const go = useGo()
  const edit = useObjectEdit(presets, stored, {
    onSaved: (saved) => {
      if (!stored) go(`/policies/presets/${saved.id}`)
    },
  })
  const { kind, template } = edit.draft.value
  const invalid = templateError(template)
  const errorOf = (path: string) =>
    path === 'template' && invalid
      ? text.policies.jsonInvalid(invalid)
      : ((path === 'template' ? edit.of(`template.${kind}`) : undefined) ?? edit.of(path))
  return (
    <EditForm edit={edit} isNew={!stored} buttons={<Back to="/policies/presets">{words.label}</Back>}>
      <div className="form form--2 form--fields">
        <FieldList
          draft={edit.draft}
          error={errorOf}
          fields={[
            { field: 'name', label: text.common.name, disabled: stored?.data.builtin, required: true },
            {
              field: 'category',
              kind: 'choice',
              label: words.category,
              options: CATEGORIES.map((each) => [each, words.categories[each]]),
            },
            { field: 'description', label: text.common.description, wide: true },
            {
              field: 'kind',
              kind: 'choice',
              label: words.makes,
              options: [
                ['policy', words.kinds.policy],
                ['profile', words.kinds.profile],
              ],
            },
            {
              field: 'template',
              kind: 'area',
              rows: 12,
              wide: true,
              label: words.templateLabel,
              hint: words.templateFields[kind],
            },
          ]}
        />
      </div>
    </EditForm>
  )
}
