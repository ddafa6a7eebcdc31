// One privacy class.

import type { Schemas } from '@/api/client'
import { useGo } from '@/session/link'
import type { Edit } from '@/components/edit'
import { TextArea } from '@/components/fields'
import { EditForm } from '@/components/form'
import { FieldList } from '@/components/form-fields'
import { ObjectRoute } from '@/components/object-form'
import { ObjectPage } from '@/components/object-page'
import { deletionOf, resource, useObjectEdit, type Stored } from '@/components/resource'
import { Tag } from '@/components/state'
import { useText } from '@/text'
import { Back } from './back'

type PrivacyClass = Schemas['PrivacyClass']

const privacyClasses = resource('/privacy-classes/{id}', {
  key: 'privacy-class',
  type: 'privacy_class',
  blank: {
    name: '',
    description: '',
    dns_mode: 'device',
    force_dns: true,
    force_ntp: false,
    block_doh: false,
    block_dot: false,
    block_quic: false,
    block_ipv6: false,
    webrtc: 'off',
    ech: 'allow',
    fail_policy_floor: 'fail-closed',
    allow_exceptions: true,
    query_log: 'full',
    telemetry_lists: [],
  },
  body: (fields, stored) => ({ ...fields, builtin: stored?.builtin ?? false }),
})

type Draft = ReturnType<typeof privacyClasses.fields>

const SWITCHES = [
  'force_dns',
  'force_ntp',
  'block_doh',
  'block_dot',
  'block_quic',
  'block_ipv6',
  'allow_exceptions',
] as const

export default function ClassPage() {
  const text = useText()
  return (
    <ObjectRoute resource={privacyClasses} newTitle={text.policies.createClass}>
      {(stored) => <ClassForm stored={stored} />}
    </ObjectRoute>
  )
}

function ClassForm({ stored }: { stored: Stored<PrivacyClass> | null }) {
  const text = useText()
  const go = useGo()
  const found = stored?.data
  const edit = useObjectEdit(privacyClasses, stored, {
    onSaved: (saved) => {
      if (!found) go(`/policies/classes/${saved.id}`)
    },
  })
  return (
    <ObjectPage
      question={text.policies.classQuestion}
      answer={
        <>
          {found?.name ?? text.policies.createClass}{' '}
          {found?.builtin ? <Tag>{text.policies.builtin}</Tag> : null}
        </>
      }
      deletion={deletionOf(privacyClasses, found?.builtin ? null : found, {
        title: text.policies.deleteTitle,
        consequence: text.policies.deleteClassMeans,
        action: text.policies.deleteClass,
        back: '/policies/classes',
      })}
    >
      <EditForm
        edit={edit}
        isNew={!found}
        buttons={<Back to="/policies/classes">{text.policies.classes}</Back>}
      >
        <ClassFields edit={edit} builtin={found?.builtin ?? false} />
      </EditForm>
    </ObjectPage>
  )
}

function ClassFields({ edit, builtin }: { edit: Edit<Draft>; builtin: boolean }) {
  const text = useText()
  const words = text.policies
  const { value, set } = edit.draft
  const field = { draft: edit.draft, error: edit.of }
  const choice = (name: keyof Draft & string, label: string, options: Record<string, string>) =>
    ({ field: name, kind: 'choice', label, options: Object.entries(options) }) as const
  return (
    <>
      <div className="form form--2">
        <FieldList
          {...field}
          fields={[
            { field: 'name', label: text.common.name, disabled: builtin },
            { field: 'description', label: text.common.description },
          ]}
        />
      </div>
      <h3>{words.sectionFail}</h3>
      <FieldList
        {...field}
        fields={[
          { ...choice('fail_policy_floor', words.floorLabel, words.failOptions), hint: words.floorHint },
        ]}
      />
      <h3>{words.blocks}</h3>
      <div className="form form--2">
        <FieldList
          {...field}
          fields={SWITCHES.map((name) => ({
            field: name,
            kind: 'check',
            label: words.switches[name],
          }))}
        />
      </div>
      <div className="form form--2">
        <FieldList
          {...field}
          fields={[
            choice('dns_mode', words.dnsMode, words.classDnsModes),
            choice('webrtc', words.webrtc, words.webrtcs),
            choice('ech', words.ech, words.echs),
            choice('query_log', words.queryLog, words.queryLogs),
          ]}
        />
      </div>
      <TextArea
        label={words.telemetryLists}
        hint={words.telemetryHint}
        rows={3}
        value={value.telemetry_lists.join('\n')}
        error={edit.of('telemetry_lists')}
        onChange={(written) => set('telemetry_lists', written === '' ? [] : written.split('\n'))}
      />
    </>
  )
}
