// A device group: its members and what they take from it.

import { useMemo } from 'react'
import type { Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { useGo } from '@/session/link'
import { EditForm } from '@/components/form'
import { FieldList } from '@/components/form-fields'
import { ObjectRoute } from '@/components/object-form'
import { ObjectPage } from '@/components/object-page'
import { PickMany } from '@/components/picker'
import { deletionOf, resource, useObjectEdit, type Stored } from '@/components/resource'
import { useText } from '@/text'
import { inherited, PrivacyClassChoice, ProfileChoice, TrustClassChoice } from './form-parts'

type Group = Schemas['DeviceGroup']

const groups = resource('/device-groups/{id}', {
  key: 'group',
  type: 'device_group',
  fields: (group: Group | null) => ({
    name: group?.name ?? '',
    description: group?.description ?? '',
    members: group?.members ?? [],
    trust_class: group?.trust_class ?? null,
    privacy_class: group?.privacy_class ?? null,
    profile: group?.profile ?? null,
    color: group?.color ?? '',
  }),
  body: (fields) => ({ ...fields, color: fields.color || null }),
})

export default function GroupPage() {
  return <ObjectRoute resource={groups}>{(stored) => <GroupForm stored={stored} />}</ObjectRoute>
}

function GroupForm({ stored }: { stored: Stored<Group> | null }) {
  const text = useText()
  const go = useGo()
  const words = text.devices.groupList
  const group = stored?.data
  const edit = useObjectEdit(groups, stored, {
    onSaved: (saved) => {
      if (!group) go(`/devices/groups/${saved.id}`)
    },
  })
  const { value, set } = edit.draft
  return (
    <ObjectPage
      question={group ? words.questionOf(group.name) : text.devices.tabs.groups}
      answer={group ? words.answerOf(value.members.length) : words.addSentence}
      deletion={deletionOf(groups, group, {
        title: words.removeTitle,
        consequence: words.removeConsequence,
        back: '/devices/groups',
      })}
    >
      <EditForm edit={edit} isNew={!group} onCancel={group ? undefined : () => go('/devices/groups')}>
        <div className="form form--2 form--fields">
          <FieldList
            draft={edit.draft}
            error={edit.of}
            fields={[
              { field: 'name', label: text.common.name, required: true },
              { field: 'description', label: text.common.description },
              inherited(edit.draft, 'trust_class', TrustClassChoice),
              inherited(edit.draft, 'privacy_class', PrivacyClassChoice),
              inherited(edit.draft, 'profile', ProfileChoice),
              { field: 'color', label: words.color, input: { placeholder: '#3366cc' } },
            ]}
          />
          <Members chosen={value.members} onChange={(chosen) => set('members', chosen)} />
        </div>
      </EditForm>
    </ObjectPage>
  )
}

function Members({ chosen, onChange }: { chosen: string[]; onChange: (chosen: string[]) => void }) {
  const words = useText().devices.groupList
  const devices = useGet('/devices', {}, { every: 60_000 }).data?.data
  const all = useMemo(
    () => (devices ?? []).map(({ id, name, ips, mac }) => ({ id, name, hint: ips?.[0] ?? mac ?? '' })),
    [devices],
  )
  return (
    <PickMany
      key={devices ? 'there' : 'loading'}
      label={words.members}
      all={all}
      chosen={chosen}
      onChange={onChange}
    />
  )
}
