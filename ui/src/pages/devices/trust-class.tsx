// A trust class: what its devices may reach.

import { useParams } from '@tanstack/react-router'
import { ApiError, call, client, type Schemas } from '@/api/client'
import { get, useGet } from '@/api/query'
import { useTitle } from '@/session/crumb'
import { useGo } from '@/session/link'
import { NotFound } from '@/components/not-found'
import { useEdit } from '@/components/edit'
import { Check, Select, TextField } from '@/components/fields'
import { EditForm } from '@/components/form'
import { ObjectPage } from '@/components/object-page'
import { Loaded } from '@/components/section'
import { useText } from '@/text'
import { PrivacyClassChoice, ProfileChoice } from './form-parts'
import { devices as entry } from './entry'

type TrustClass = Schemas['TrustClass']

type ClassFields = {
  name: string
  description: string
  level: string
  lan_access: TrustClass['lan_access']
  internet: TrustClass['internet']
  admin_access: boolean
  dns_local: boolean
  mdns: boolean
  default_profile: string | null
  privacy_class: string | null
}

const NEW_CLASS: ClassFields = {
  name: '',
  description: '',
  level: '50',
  lan_access: 'segment',
  internet: 'policy',
  admin_access: false,
  dns_local: true,
  mdns: false,
  default_profile: null,
  privacy_class: null,
}

function fieldsOf(each: TrustClass): ClassFields {
  const { name, description, level, lan_access, internet, admin_access, dns_local, mdns } = each
  return {
    name,
    description,
    level: String(level),
    lan_access,
    internet,
    admin_access,
    dns_local,
    mdns,
    default_profile: each.default_profile,
    privacy_class: each.privacy_class,
  }
}

export default function TrustClassPage() {
  const { id } = useParams({ strict: false }) as { id: string }
  return id === 'new' ? <ClassForm /> : <KnownClass key={id} id={id} />
}

function KnownClass({ id }: { id: string }) {
  const query = useGet('/trust-classes/{id}', { path: { id } })
  useTitle(query.data?.data.name)
  if (query.error instanceof ApiError && query.error.status === 404) return <NotFound />
  return (
    <Loaded query={query} lines={8}>
      {(each) => <ClassForm known={each} etag={query.data?.etag ?? null} />}
    </Loaded>
  )
}

function ClassForm({ known, etag = null }: { known?: TrustClass; etag?: string | null }) {
  const text = useText()
  const go = useGo()
  const words = text.devices.classList
  const id = known?.id
  const edit = useEdit<ClassFields, TrustClass>({
    key: `trust-class.${id ?? 'new'}`,
    version: { value: known ? fieldsOf(known) : NEW_CLASS, etag },
    save: (value, tag) => {
      const body = { ...value, level: Number(value.level) } as Schemas['TrustClassInput']
      return id
        ? call(
            client.PUT('/trust-classes/{id}', {
              params: { path: { id }, header: tag ? { 'If-Match': tag } : {} },
              body,
            }),
          )
        : call(client.POST('/trust-classes', { body }))
    },
    read: async () => {
      const answer = await get('/trust-classes/{id}', { path: { id: id ?? '' } })
      return { value: fieldsOf(answer.data), etag: answer.etag }
    },
    onSaved: (saved) => {
      if (!id) go(`/devices/trust-classes/${saved.id}`)
    },
  })
  const { value, set } = edit.draft
  return (
    <ObjectPage
      entry={entry}
      question={known ? words.questionOf(known.name) : text.devices.tabs.trustClasses}
      answer={words.answerOf(
        words.lanValues[value.lan_access] ?? value.lan_access,
        words.internetValues[value.internet] ?? value.internet,
      )}
      deletion={
        known && !known.builtin
          ? {
              name: known.name,
              title: words.removeTitle(known.name),
              consequence: words.removeConsequence,
              subject: { type: 'trust_class', id: known.id },
              remove: () =>
                call(client.DELETE('/trust-classes/{id}', { params: { path: { id: known.id } } })),
              back: '/devices/trust-classes',
              draft: `trust-class.${known.id}`,
            }
          : null
      }
    >
      <EditForm edit={edit} isNew={!id} onCancel={id ? undefined : () => go('/devices/trust-classes')}>
        <div className="form form--2 form--fields">
          <TextField
            label={text.common.name}
            value={value.name}
            error={edit.of('name')}
            disabled={known?.builtin}
            hint={known?.builtin ? words.builtinHint : undefined}
            onChange={(typed) => set('name', typed)}
            required
          />
          <TextField
            label={text.common.description}
            value={value.description}
            error={edit.of('description')}
            onChange={(typed) => set('description', typed)}
          />
          <TextField
            label={words.level}
            hint={words.levelHint}
            type="number"
            min={0}
            max={100}
            value={value.level}
            error={edit.of('level')}
            onChange={(typed) => set('level', typed)}
          />
          <Select
            label={words.lan}
            value={value.lan_access as string}
            options={Object.entries(words.lanValues)}
            error={edit.of('lan_access')}
            onChange={(chosen) => set('lan_access', chosen as ClassFields['lan_access'])}
          />
          <Select
            label={words.internet}
            value={value.internet as string}
            options={Object.entries(words.internetValues)}
            hint={words.internetHints[value.internet]}
            error={edit.of('internet')}
            onChange={(chosen) => set('internet', chosen as ClassFields['internet'])}
          />
          <PrivacyClassChoice
            value={value.privacy_class}
            error={edit.of('privacy_class')}
            onChange={(chosen) => set('privacy_class', chosen)}
          />
          <ProfileChoice
            value={value.default_profile}
            error={edit.of('default_profile')}
            onChange={(chosen) => set('default_profile', chosen)}
          />
          <Check
            label={words.admin}
            hint={words.adminHint}
            checked={value.admin_access}
            onChange={(checked) => set('admin_access', checked)}
          />
          <Check
            label={words.dnsLocal}
            hint={words.dnsLocalHint}
            checked={value.dns_local}
            onChange={(checked) => set('dns_local', checked)}
          />
          <Check
            label={words.mdns}
            hint={words.mdnsHint}
            checked={value.mdns}
            onChange={(checked) => set('mdns', checked)}
          />
        </div>
      </EditForm>
    </ObjectPage>
  )
}
