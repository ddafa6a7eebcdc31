// Roles of other gateways: which kinds of objects a node may fetch here, and which it may send.

import type { Schemas } from '@/api/client'
import { Page } from '@/components/answer'
import { FieldList } from '@/components/form-fields'
import { ObjectList, type FormProps } from '@/components/object-list'
import { PickMany } from '@/components/picker'
import { resource } from '@/components/resource'
import { Tag } from '@/components/state'
import { TwoLines } from '@/components/two-lines'
import { useText } from '@/text'
import { permissionsOf } from './permissions'

type Role = Schemas['FederationRole']
type Right = 'push' | 'pull'

const roles = resource('/federation-roles/{id}', {
  key: 'federation-role',
  blank: { name: '', description: '', permissions: [] as Role['permissions'] },
})

type RoleFields = ReturnType<typeof roles.fields>

export default function Roles() {
  const words = useText().federation
  const kindsWith = (role: Role, right: Right) =>
    role.permissions
      .filter((each) => each[right])
      .map(({ kind }) => words.kinds[kind])
      .join(', ') || '-'
  return (
    <Page question={words.roles.question} answer={words.roles.answer}>
      <ObjectList
        resource={roles}
        words={words.roles}
        fixed={({ builtin }) => builtin}
        locked={({ builtin }) => builtin}
        columns={[
          {
            head: words.columns.role,
            bare: true,
            cell: (role) => (
              <TwoLines second={role.description}>
                <span className="med">{role.name}</span>
                {role.builtin ? <Tag>{words.roles.builtin}</Tag> : null}
              </TwoLines>
            ),
          },
          { head: words.roles.push, cell: (role) => kindsWith(role, 'push') },
          { head: words.roles.pull, cell: (role) => kindsWith(role, 'pull') },
        ]}
        form={(props) => <RoleForm {...props} />}
      />
    </Page>
  )
}

function RoleForm({ draft, error }: FormProps<RoleFields>) {
  const words = useText().federation
  const { permissions } = draft.value
  const kinds = Object.entries(words.kinds).map(([id, name]) => ({ id, name }))
  const choice = (right: Right) => (
    <PickMany
      label={words.roles[right]}
      all={kinds}
      chosen={permissions.filter((each) => each[right]).map(({ kind }) => kind)}
      error={error('permissions')}
      onChange={(chosen) => draft.set('permissions', permissionsOf(permissions, right, chosen))}
    />
  )
  return (
    <>
      <FieldList
        draft={draft}
        texts={{ ...words.roles.fields, permissions: '' }}
        error={error}
        fields={[{ field: 'name', required: true }, { field: 'description' }]}
      />
      {choice('push')}
      {choice('pull')}
    </>
  )
}
