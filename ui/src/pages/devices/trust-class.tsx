// A trust class: what its devices may reach.

import type { Schemas } from '@/api/client'
import { useGo } from '@/session/link'
import type { Edit } from '@/components/edit'
import { EditForm } from '@/components/form'
import { FieldList } from '@/components/form-fields'
import { ObjectRoute } from '@/components/object-form'
import { ObjectPage } from '@/components/object-page'
import { deletionOf, resource, useObjectEdit, type Stored } from '@/components/resource'
import { useText } from '@/text'
import { inherited, PrivacyClassChoice, ProfileChoice } from './form-parts'

type TrustClass = Schemas['TrustClass']

const trustClasses = resource('/trust-classes/{id}', {
  key: 'trust-class',
  type: 'trust_class',
  fields: (each: TrustClass | null) => ({
    name: each?.name ?? '',
    description: each?.description ?? '',
    level: String(each?.level ?? 50),
    lan_access: each?.lan_access ?? 'segment',
    internet: each?.internet ?? 'policy',
    admin_access: each?.admin_access ?? false,
    dns_local: each?.dns_local ?? true,
    mdns: each?.mdns ?? false,
    default_profile: each?.default_profile ?? null,
    privacy_class: each?.privacy_class ?? null,
  }),
  body: (fields) => ({ ...fields, level: Number(fields.level) }),
})

type ClassFields = ReturnType<typeof trustClasses.fields>

export default function TrustClassPage() {
  return <ObjectRoute resource={trustClasses}>{(stored) => <ClassForm stored={stored} />}</ObjectRoute>
}

function ClassForm({ stored }: { stored: Stored<TrustClass> | null }) {
  const text = useText()
  const go = useGo()
  const words = text.devices.classList
  const known = stored?.data
  const edit = useObjectEdit(trustClasses, stored, {
    onSaved: (saved) => {
      if (!known) go(`/devices/trust-classes/${saved.id}`)
    },
  })
  const { value } = edit.draft
  return (
    <ObjectPage
      question={known ? words.questionOf(known.name) : text.devices.tabs.trustClasses}
      answer={words.answerOf(
        words.lanValues[value.lan_access] ?? value.lan_access,
        words.internetValues[value.internet],
      )}
      deletion={deletionOf(trustClasses, known?.builtin ? null : known, {
        title: words.removeTitle,
        consequence: words.removeConsequence,
        back: '/devices/trust-classes',
      })}
    >
      <EditForm edit={edit} isNew={!known} onCancel={known ? undefined : () => go('/devices/trust-classes')}>
        <div className="form form--2 form--fields">
          <ClassFields edit={edit} builtin={known?.builtin ?? false} />
        </div>
      </EditForm>
    </ObjectPage>
  )
}

function ClassFields({ edit, builtin }: { edit: Edit<ClassFields>; builtin: boolean }) {
  const text = useText()
  const words = text.devices.classList
  const { value } = edit.draft
  return (
    <FieldList
      draft={edit.draft}
      error={edit.of}
      fields={[
        {
          field: 'name',
          label: text.common.name,
          hint: builtin ? words.builtinHint : undefined,
          disabled: builtin,
          required: true,
        },
        { field: 'description', label: text.common.description },
        { field: 'level', kind: 'number', label: words.level, hint: words.levelHint, min: 0, max: 100 },
        { field: 'lan_access', kind: 'choice', label: words.lan, options: Object.entries(words.lanValues) },
        {
          field: 'internet',
          kind: 'choice',
          label: words.internet,
          hint: words.internetHints[value.internet],
          options: Object.entries(words.internetValues),
        },
        inherited(edit.draft, 'privacy_class', PrivacyClassChoice),
        inherited(edit.draft, 'default_profile', ProfileChoice),
        { field: 'admin_access', kind: 'check', label: words.admin, hint: words.adminHint },
        { field: 'dns_local', kind: 'check', label: words.dnsLocal, hint: words.dnsLocalHint },
        { field: 'mdns', kind: 'check', label: words.mdns, hint: words.mdnsHint },
      ]}
    />
  )
}
