// The list of device groups.

import { useMemo } from 'react'
import type { Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { Link, useGo } from '@/session/link'
import { Answer, Tabs } from '@/components/answer'
import { DataTable, type ColumnDef } from '@/components/data-table'
import { Icon } from '@/components/icons'
import { Empty, Loaded } from '@/components/section'
import { useText } from '@/text'
import { formatNumber } from '@/text/format'
import { devices as entry } from './entry'

type Group = Schemas['DeviceGroup']

export default function Groups() {
  const text = useText()
  const go = useGo()
  const words = text.devices.groupList
  const query = useGet('/device-groups')
  const devices = useGet('/devices', {}, { every: 60_000 }).data?.data
  const grouped = useMemo(
    () => new Set((query.data?.data ?? []).flatMap((group) => group.members)).size,
    [query.data],
  )
  // Columns of any type of cell.
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  const columns: ColumnDef<Group, any>[] = [
    {
      id: 'name',
      header: text.common.name,
      accessorFn: (group) => group.name.toLowerCase(),
      meta: { label: '' },
      cell: ({ row: { original: group } }) => (
        <div className="two">
          <Link className="med" to={`/devices/groups/${group.id}`}>
            {group.color ? (
              <span className="swatch" style={{ background: group.color }} aria-hidden="true" />
            ) : null}
            {group.name}
          </Link>
          {group.description ? <small>{group.description}</small> : null}
        </div>
      ),
    },
    {
      id: 'members',
      header: words.members,
      accessorFn: (group) => group.members.length,
      meta: { numeric: true },
      cell: ({ row: { original: group } }) => (
        <Link to="/devices" search={{ group: group.id }}>
          {formatNumber(group.members.length)}
        </Link>
      ),
    },
    { id: 'class', header: text.devices.trustClass, accessorFn: (group) => group.trust_class ?? '-' },
    { id: 'privacy', header: text.devices.privacyClass, accessorFn: (group) => group.privacy_class ?? '-' },
    { id: 'profile', header: text.devices.profile, accessorFn: (group) => group.profile ?? '-' },
  ]
  return (
    <>
      <Answer
        question={words.question}
        actions={
          <Link className="btn btn--pri" to="/devices/groups/new">
            <Icon name="plus" />
            {words.add}
          </Link>
        }
      >
        {query.data
          ? words.answer(query.data.data.length, grouped, devices?.length ?? null)
          : text.common.loading}
      </Answer>
      <Tabs entry={entry} />
      <Loaded
        query={query}
        isEmpty={(groups) => groups.length === 0}
        empty={
          <Empty
            action={
              <Link className="btn" to="/devices/groups/new">
                {words.add}
              </Link>
            }
            command="gateway-ctl device-groups"
          >
            {words.empty}
          </Empty>
        }
      >
        {(groups) => (
          <DataTable
            label={text.devices.tabs.groups}
            rows={groups}
            columns={columns}
            id={(group) => group.id}
            open={(group) => go(`/devices/groups/${group.id}`)}
          />
        )}
      </Loaded>
    </>
  )
}
