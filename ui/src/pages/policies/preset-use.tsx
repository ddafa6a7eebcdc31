// Using a preset: what it leaves open, what would be made, and making it.

import { useState } from 'react'
import { call, client } from '@/api/client'
import { useGo } from '@/session/link'
import { Facts } from '@/components/facts'
import { Button } from '@/components/button'
import { Dialog } from '@/components/dialog'
import { useDraft, same, type Draft } from '@/components/draft'
import { FieldList } from '@/components/form-fields'
import { Failure } from '@/components/section'
import { useFormAction } from '@/components/action'
import { useText } from '@/text'
import { sourceWords, useDryRun, useNames } from './data'
import { HopEditor } from './hop-editor'
import { Checked } from './policy-check'
import { PolicyPreview } from './policy-preview'
import { bodyOf, draftOf, fieldsOf, kindOf, startOf, type Preset, type Use } from './preset-model'
import { SourcePicker } from './source-picker'
import { useSettled } from './use-settled'

export function PresetUse({ preset }: { preset: Preset }) {
  const text = useText()
  const words = text.presets
  const kind = kindOf(preset)
  const draft = useDraft<Use>(`preset.use.${preset.id}`, startOf(preset))
  const [asking, setAsking] = useState(false)
  const { value } = draft
  const settled = useSettled(value)
  const check = useDryRun({
    [kind === 'policy' ? 'policies' : 'profiles']: [{ ...bodyOf(preset), ...fieldsOf(kind, settled) }],
  })
  const problemOf = (path: string) =>
    check.data?.data.errors.find((problem) => problem.path.replace(/^resources\.\w+\[0\]\.?/, '') === path)
      ?.message
  return (
    <div className="cols cols--why">
      <form
        className="sec policyform form"
        onSubmit={(event) => {
          event.preventDefault()
          setAsking(true)
        }}
      >
        <div className="sec__h">
          <h2>{words.useTitle}</h2>
          <p>{preset.description}</p>
        </div>
        <UseFields preset={preset} draft={draft} errorOf={problemOf} />
        <div className="btns formend">
          <Button kind="primary" submit needs="operator">
            {words.create[kind]}
          </Button>
          {draft.dirty ? (
            <Button kind="ghost" onClick={draft.discard}>
              {text.common.discardDraft}
            </Button>
          ) : null}
        </div>
      </form>
      <div className="sec">
        <PolicyPreview policy={null} draft={draftOf(preset, value)} />
        <Checked query={check} name={settled.name} pending={!same(settled, value)} started />
      </div>
      <Dialog open={asking} onClose={() => setAsking(false)} title={words.confirmTitle[kind](value.name)}>
        <Make preset={preset} use={value} onClose={() => setAsking(false)} onMade={draft.discard} />
      </Dialog>
    </div>
  )
}

interface FieldsProps {
  preset: Preset
  draft: Draft<Use>
  errorOf: (path: string) => string | undefined
}

/** What the preset leaves open. */
function UseFields({ preset, draft, errorOf }: FieldsProps) {
  const text = useText()
  const { value, set, replace } = draft
  const isPolicy = kindOf(preset) === 'policy'
  return (
    <>
      <div className="form form--2">
        <FieldList
          draft={draft}
          error={errorOf}
          fields={[
            { field: 'name', label: text.common.name, required: true },
            isPolicy && {
              field: 'priority',
              kind: 'number',
              label: text.policies.priority,
              hint: text.policies.priorityHint,
              min: 0,
              max: 1_000_000,
            },
          ]}
        />
      </div>
      {isPolicy ? (
        <>
          <h3>{text.policies.sectionWho}</h3>
          <SourcePicker
            type={value.source_type}
            value={value.source_value}
            errorOf={errorOf}
            onChange={(source_type, source_value) => replace({ ...value, source_type, source_value })}
          />
        </>
      ) : null}
      <h3>{text.policies.sectionWhere}</h3>
      <HopEditor hops={value.hops} errorOf={errorOf} onChange={(hops) => set('hops', hops)} />
      {value.hops.length === 0 ? (
        <p className="strong">{text.policies.noHops[draftOf(preset, value).fail_policy ?? 'fail-closed']}</p>
      ) : null}
    </>
  )
}

interface MakeProps {
  preset: Preset
  use: Use
  onClose: () => void
  onMade: () => void
}

/** What is made, in words, and the button that makes it. */
function Make({ preset, use, onClose, onMade }: MakeProps) {
  const text = useText()
  const words = text.presets
  const go = useGo()
  const names = useNames()
  const kind = kindOf(preset)
  const shown = draftOf(preset, use)
  const fail = shown.fail_policy ?? 'fail-closed'
  const make = useFormAction(
    () =>
      call(
        client.POST('/presets/{id}/apply', {
          params: { path: { id: preset.id } },
          body: fieldsOf(kind, use),
        }),
      ),
    (data) => {
      const made = data.created[0]
      onMade()
      go(kind === 'policy' ? `/policies/${made?.id ?? ''}` : `/policies/profiles/${made?.id ?? ''}`)
      return kind === 'policy' ? text.policies.savedSay(made?.name ?? use.name) : text.common.saved
    },
  )
  return (
    <div className="form">
      <Facts
        facts={[
          kind === 'policy' && [text.policies.priority, use.priority],
          kind === 'policy' && [text.policies.sectionWho, sourceWords(shown, names, text)],
          [
            text.policies.columns.hops,
            use.hops.map((hop) => hop.target).join(', ') || text.policies.noHops[fail],
          ],
          [text.policies.failLabel, `${text.policies.failWords[fail]}: ${text.policies.failSentences[fail]}`],
        ]}
      />
      <p className="mid">{words.confirmMeans[kind]}</p>
      <Failure error={make.error} />
      <div className="btns">
        <Button kind="primary" needs="operator" does={make}>
          {words.create[kind]}
        </Button>
        <Button kind="ghost" onClick={onClose}>
          {text.common.cancel}
        </Button>
      </div>
    </div>
  )
}
