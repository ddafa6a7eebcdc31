// One preset: its use, and its template.

import { useParams } from '@tanstack/react-router'
import { ApiError, call, client } from '@/api/client'
import { get, useGet } from '@/api/query'
import { useTitle } from '@/session/crumb'
import { useGo } from '@/session/link'
import { NotFound } from '@/components/not-found'
import { useEdit } from '@/components/edit'
import { Select, TextArea, TextField } from '@/components/fields'
import { EditForm } from '@/components/form'
import { ObjectPage } from '@/components/object-page'
import { Loaded, Section } from '@/components/section'
import { Tag } from '@/components/state'
import { useText } from '@/text'
import { Back } from './back'
import { policies as entry } from './entry'
import { kindOf, NEW_PRESET, presetForm, presetInput, templateError } from './preset-model'
import type { Preset, PresetForm } from './preset-model'
import { PresetUse } from './preset-use'

export default function PresetPage() {
  const text = useText()
  const words = text.presets
  const { id } = useParams({ strict: false }) as { id: string }
  const isNew = id === 'new'
  const query = useGet('/presets/{id}', { path: { id } }, { enabled: !isNew })
  const preset = query.data?.data
  const etag = query.data?.etag ?? null
  useTitle(isNew ? words.createTitle : preset?.name)
  if (query.error instanceof ApiError && query.error.status === 404) return <NotFound />
  if (isNew)
    return (
      <ObjectPage question={words.question} answer={words.createTitle} entry={entry}>
        <Section title={words.template} hint={words.templateHint}>
          <Form preset={null} etag={null} />
        </Section>
      </ObjectPage>
    )
  return (
    <ObjectPage
      question={preset ? words.useQuestion(preset.name) : words.question}
      answer={
        preset ? (
          <>
            {words.useAnswer[kindOf(preset)]} {preset.builtin ? <Tag>{text.policies.builtin}</Tag> : null}
          </>
        ) : query.error ? (
          text.common.unreachable
        ) : (
          text.common.loading
        )
      }
      entry={entry}
      deletion={
        preset && !preset.builtin
          ? {
              name: preset.name,
              title: text.policies.deleteTitle(preset.name),
              consequence: words.deleteMeans,
              action: words.deleteAction,
              remove: () => call(client.DELETE('/presets/{id}', { params: { path: { id } } })),
              back: '/policies/presets',
              draft: `preset.${id}`,
            }
          : null
      }
    >
      <Loaded query={query} lines={8}>
        {(read) => (
          <>
            <PresetUse key={`use ${read.id}`} preset={read} />
            <Section title={words.template} hint={read.builtin ? words.builtinHint : words.templateHint}>
              <Form key={read.id} preset={read} etag={etag} />
            </Section>
          </>
        )}
      </Loaded>
    </ObjectPage>
  )
}

const CATEGORIES = ['streaming', 'gaming', 'work', 'iot', 'privacy'] as const

function Form({ preset, etag }: { preset: Preset | null; etag: string | null }) {
  const text = useText()
  const words = text.presets
  const go = useGo()
  const edit = useEdit<PresetForm, Preset>({
    key: `preset.${preset?.id ?? 'new'}`,
    version: { value: preset ? presetForm(preset) : NEW_PRESET, etag },
    save: async (value, tag) =>
      preset
        ? call(
            client.PUT('/presets/{id}', {
              params: { path: { id: preset.id }, header: tag ? { 'If-Match': tag } : {} },
              body: presetInput(value),
            }),
          )
        : call(client.POST('/presets', { body: presetInput(value) })),
    read: async () => {
      const now = await get('/presets/{id}', { path: { id: preset?.id ?? '' } })
      return { value: presetForm(now.data), etag: now.etag }
    },
    onSaved: (saved) => {
      if (!preset) go(`/policies/presets/${saved.id}`)
    },
  })
  const { value, set } = edit.draft
  const invalid = templateError(value.template)
  return (
    <EditForm edit={edit} isNew={!preset} buttons={<Back to="/policies/presets">{words.label}</Back>}>
      <div className="form form--2 form--fields">
        <TextField
          label={text.common.name}
          value={value.name}
          error={edit.of('name')}
          disabled={preset?.builtin}
          autoComplete="off"
          required
          onChange={(name) => set('name', name)}
        />
        <Select
          label={words.category}
          value={value.category as string}
          error={edit.of('category')}
          options={CATEGORIES.map((each) => [each, words.categories[each] ?? each] as const)}
          onChange={(category) => set('category', category as PresetForm['category'])}
        />
        <div className="wide">
          <TextField
            label={text.common.description}
            value={value.description}
            error={edit.of('description')}
            onChange={(description) => set('description', description)}
          />
        </div>
        <Select
          label={words.makes}
          value={value.kind}
          options={[
            ['policy', words.kinds.policy],
            ['profile', words.kinds.profile],
          ]}
          onChange={(kind) => set('kind', kind)}
        />
        <div className="wide">
          <TextArea
            label={words.templateLabel}
            hint={words.templateFields[value.kind]}
            rows={12}
            spellCheck={false}
            value={value.template}
            error={
              invalid
                ? text.policies.jsonInvalid(invalid)
                : (edit.of(`template.${value.kind}`) ?? edit.of('template'))
            }
            onChange={(template) => set('template', template)}
          />
        </div>
      </div>
    </EditForm>
  )
}
