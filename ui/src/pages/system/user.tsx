// One account: create, change, delete.

import type { Schemas } from '@/api/client'
import { useGo } from '@/session/link'
import { EditForm } from '@/components/form'
import { FieldList } from '@/components/form-fields'
import { ObjectRoute } from '@/components/object-form'
import { ObjectPage } from '@/components/object-page'
import { PasswordField } from '@/components/password-field'
import { deletionOf, resource, useObjectEdit, type Stored } from '@/components/resource'
import { Section } from '@/components/section'
import { useText } from '@/text'

type User = Schemas['UserView']

const ROLES: Schemas['Role'][] = ['admin', 'operator', 'viewer']

const users = resource('/auth/users/{id}', {
  key: 'user',
  name: (user) => user.username,
  secrets: ['password'],
  fields: (user: User | null) => ({
    username: user?.username ?? '',
    role: user?.role ?? 'operator',
    enabled: user?.enabled ?? true,
    password: '',
  }),
  body: ({ password, ...form }) => ({ ...form, ...(password ? { password } : {}) }),
})

export default function UserPage() {
  const t = useText().system.accounts
  return (
    <ObjectRoute resource={users} newTitle={t.newUser}>
      {(stored) => <Editor stored={stored} />}
    </ObjectRoute>
  )
}

function Editor({ stored }: { stored: Stored<User> | null }) {
  const text = useText()
  const t = text.system.accounts
  const go = useGo()
  const user = stored?.data
  const edit = useObjectEdit(users, stored, { onSaved: () => go('/system') })
  return (
    <ObjectPage
      question={text.system.tabs.accounts}
      answer={user?.username ?? t.newUser}
      deletion={deletionOf(users, user, {
        title: (name) => `${text.common.delete}: ${name}`,
        consequence: t.userConsequence,
        needs: 'admin',
        back: '/system',
      })}
    >
      <Section title={user ? text.common.edit : text.common.create}>
        <EditForm edit={edit} isNew={!user} needs="admin" onCancel={() => go('/system')}>
          <div className="form">
            <FieldList
              draft={edit.draft}
              error={edit.of}
              fields={[
                { field: 'username', label: t.user, required: true },
                {
                  field: 'role',
                  kind: 'choice',
                  label: t.role,
                  hint: t.rights[edit.draft.value.role],
                  options: ROLES.map((role) => [role, text.common.roles[role]]),
                },
                {
                  field: 'password',
                  label: t.password,
                  hint: user ? t.passwordKept : t.passwordHint,
                  render: (field) => <PasswordField {...field} fresh required={!user} />,
                },
                { field: 'enabled', kind: 'check', label: t.enabled },
              ]}
            />
          </div>
        </EditForm>
      </Section>
    </ObjectPage>
  )
}
