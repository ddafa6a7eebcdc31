// One account: create, change, delete.

import { useParams } from '@tanstack/react-router'
import { call, client, type Schemas } from '@/api/client'
import { get, useGet } from '@/api/query'
import { useTitle } from '@/session/crumb'
import { useGo } from '@/session/link'
import { useEdit } from '@/components/edit'
import { Check, Select, TextField } from '@/components/fields'
import { EditForm } from '@/components/form'
import { PasswordField } from '@/components/password-field'
import { ObjectPage } from '@/components/object-page'
import { Loaded, Section } from '@/components/section'
import { useText } from '@/text'
import { system } from './entry'

type User = Schemas['UserView']
type Form = { username: string; role: Schemas['RoleInput']; enabled: boolean; password: string }

const EMPTY: Form = { username: '', role: 'operator', enabled: true, password: '' }

function formOf({ username, role, enabled }: User): Form {
  return { username, role, enabled, password: '' }
}

export default function UserPage() {
  const { id } = useParams({ strict: false }) as { id: string }
  return id === 'new' ? <Editor /> : <Existing id={id} />
}

function Existing({ id }: { id: string }) {
  const read = useGet('/auth/users/{id}', { path: { id } }, { every: false })
  return (
    <Loaded query={read} lines={6}>
      {(user) => <Editor key={id} user={user} etag={read.data?.etag ?? null} />}
    </Loaded>
  )
}

function Editor({ user, etag = null }: { user?: User; etag?: string | null }) {
  const text = useText()
  const t = text.system.accounts
  const go = useGo()
  const edit = useEdit<Form>({
    key: `user.${user?.id ?? 'new'}`,
    version: { value: user ? formOf(user) : EMPTY, etag },
    secrets: ['password'],
    save: ({ password, ...form }, tag) => {
      const body = { ...form, ...(password ? { password } : {}) }
      return user
        ? call(
            client.PUT('/auth/users/{id}', {
              params: { path: { id: user.id }, header: tag ? { 'If-Match': tag } : {} },
              body,
            }),
          )
        : call(client.POST('/auth/users', { body }))
    },
    read: async () => {
      const now = await get('/auth/users/{id}', { path: { id: user?.id ?? '' } })
      return { value: formOf(now.data), etag: now.etag }
    },
    onSaved: () => go('/system'),
  })
  useTitle(user?.username ?? t.newUser)
  const { draft, of } = edit
  return (
    <ObjectPage
      question={text.system.tabs.accounts}
      answer={user?.username ?? t.newUser}
      entry={system}
      deletion={
        user
          ? {
              name: user.username,
              title: `${text.common.delete}: ${user.username}`,
              consequence: t.userConsequence,
              needs: 'admin',
              remove: () => call(client.DELETE('/auth/users/{id}', { params: { path: { id: user.id } } })),
              back: '/system',
              draft: `user.${user.id}`,
            }
          : null
      }
    >
      <Section title={user ? text.common.edit : text.common.create}>
        <EditForm edit={edit} isNew={!user} needs="admin" onCancel={() => go('/system')}>
          <div className="form">
            <TextField
              label={t.user}
              value={draft.value.username}
              error={of('username')}
              onChange={(value) => draft.set('username', value)}
              autoComplete="off"
              required
            />
            <Select
              label={t.role}
              hint={t.rights[draft.value.role]}
              value={draft.value.role}
              error={of('role')}
              options={(['admin', 'operator', 'viewer'] as const).map(
                (role) => [role as Form['role'], text.common.roles[role] ?? role] as const,
              )}
              onChange={(value) => draft.set('role', value)}
            />
            <PasswordField
              label={t.password}
              hint={user ? t.passwordKept : t.passwordHint}
              value={draft.value.password}
              error={of('password')}
              onChange={(value) => draft.set('password', value)}
              fresh
              required={!user}
            />
            <Check
              label={t.enabled}
              checked={draft.value.enabled}
              onChange={(value) => draft.set('enabled', value)}
            />
          </div>
        </EditForm>
      </Section>
    </ObjectPage>
  )
}
