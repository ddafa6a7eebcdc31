// A device group: its members and what they take from it.

import { useParams } from '@tanstack/react-router'
import { useMemo } from 'react'
import { ApiError, call, client, type Schemas } from '@/api/client'
import { get, useGet } from '@/api/query'
import { useTitle } from '@/session/crumb'
import { useGo } from '@/session/link'
import { NotFound } from '@/components/not-found'
import { useEdit } from '@/components/edit'
import { TextField } from '@/components/fields'
import { EditForm } from '@/components/form'
import { ObjectPage } from '@/components/object-page'
import { Loaded } from '@/components/section'
import { PickMany } from '@/components/picker'
import { useText } from '@/text'
import { PrivacyClassChoice, ProfileChoice, TrustClassChoice } from './form-parts'
import { devices as entry } from './entry'

type Group = Schemas['DeviceGroup']

type GroupFields = {
  name: string
  description: string
  members: string[]
  trust_class: string | null
  privacy_class: string | null
  profile: string | null
  color: string
}

const NEW_GROUP: GroupFields = {
  name: '',
  description: '',
  members: [],
  trust_class: null,
  privacy_class: null,
  profile: null,
  color: '',
}

function fieldsOf(group: Group): GroupFields {
  const { name, description, members, trust_class, privacy_class, profile, color } = group
  return { name, description, members, trust_class, privacy_class, profile, color: color ?? '' }
}

export default function GroupPage() {
  const { id } = useParams({ strict: false }) as { id: string }
  return id === 'new' ? <GroupForm /> : <KnownGroup key={id} id={id} />
}

function KnownGroup({ id }: { id: string }) {
  const query = useGet('/device-groups/{id}', { path: { id } })
  useTitle(query.data?.data.name)
  if (query.error instanceof ApiError && query.error.status === 404) return <NotFound />
  return (
    <Loaded query={query} lines={8}>
      {(group) => <GroupForm group={group} etag={query.data?.etag ?? null} />}
    </Loaded>
  )
}

function GroupForm({ group, etag = null }: { group?: Group; etag?: string | null }) {
  const text = useText()
  const go = useGo()
  const words = text.devices.groupList
  const devices = useGet('/devices', {}, { every: 60_000 }).data?.data
  const all = useMemo(
    () =>
      (devices ?? []).map((each) => ({
        id: each.id,
        name: each.name,
        hint: each.ips?.[0] ?? each.mac ?? '',
      })),
    [devices],
  )
  const id = group?.id
  const edit = useEdit<GroupFields, Group>({
    key: `group.${id ?? 'new'}`,
    version: { value: group ? fieldsOf(group) : NEW_GROUP, etag },
    save: (value, tag) => {
      const body = { ...value, color: value.color || null }
      return id
        ? call(
            client.PUT('/device-groups/{id}', {
              params: { path: { id }, header: tag ? { 'If-Match': tag } : {} },
              body,
            }),
          )
        : call(client.POST('/device-groups', { body }))
    },
    read: async () => {
      const answer = await get('/device-groups/{id}', { path: { id: id ?? '' } })
      return { value: fieldsOf(answer.data), etag: answer.etag }
    },
    onSaved: (saved) => {
      if (!id) go(`/devices/groups/${saved.id}`)
    },
  })
  const { value, set } = edit.draft
  return (
    <ObjectPage
      entry={entry}
      question={id ? words.questionOf(group?.name ?? '') : text.devices.tabs.groups}
      answer={id ? words.answerOf(value.members.length) : words.addSentence}
      deletion={
        group
          ? {
              name: group.name,
              title: words.removeTitle(group.name),
              consequence: words.removeConsequence,
              subject: { type: 'device_group', id: group.id },
              remove: () =>
                call(client.DELETE('/device-groups/{id}', { params: { path: { id: group.id } } })),
              back: '/devices/groups',
              draft: `group.${group.id}`,
            }
          : null
      }
    >
      <EditForm edit={edit} isNew={!id} onCancel={id ? undefined : () => go('/devices/groups')}>
        <div className="form form--2 form--fields">
          <TextField
            label={text.common.name}
            value={value.name}
            error={edit.of('name')}
            onChange={(typed) => set('name', typed)}
            required
          />
          <TextField
            label={text.common.description}
            value={value.description}
            error={edit.of('description')}
            onChange={(typed) => set('description', typed)}
          />
          <TrustClassChoice
            value={value.trust_class}
            error={edit.of('trust_class')}
            onChange={(chosen) => set('trust_class', chosen)}
          />
          <PrivacyClassChoice
            value={value.privacy_class}
            error={edit.of('privacy_class')}
            onChange={(chosen) => set('privacy_class', chosen)}
          />
          <ProfileChoice
            value={value.profile}
            error={edit.of('profile')}
            onChange={(chosen) => set('profile', chosen)}
          />
          <TextField
            label={words.color}
            value={value.color}
            placeholder="#3366cc"
            error={edit.of('color')}
            onChange={(typed) => set('color', typed)}
          />
          <PickMany
            key={devices ? 'there' : 'loading'}
            label={words.members}
            all={all}
            chosen={value.members}
            onChange={(chosen) => set('members', chosen)}
          />
        </div>
      </EditForm>
    </ObjectPage>
  )
}
