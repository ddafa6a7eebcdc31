// The list of device groups.

import { useMemo } from 'react'
import type { Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { Link, useGo } from '@/session/link'
import { answerOf, Page } from '@/components/answer'
import { DataTable } from '@/components/data-table'
import type { Column } from '@/components/table'
import { Icon } from '@/components/icons'
import { Empty, Loaded } from '@/components/section'
import { TwoLines } from '@/components/two-lines'
import { useText } from '@/text'
import { formatNumber } from '@/text/format'

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
  const columns = useColumns()
  return (
    <Page
      question={words.question}
      actions={
        <Link className="btn btn--pri" to="/devices/groups/new">
          <Icon name="plus" />
          {words.add}
        </Link>
      }
      answer={answerOf(query, text, (list) => words.answer(list.length, grouped, devices?.length ?? null))}
    >
      <Loaded
        query={query}
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
    </Page>
  )
}

function useColumns(): Column<Group>[] {
  const text = useText()
  const words = text.devices.groupList
  return [
    {
      head: text.common.name,
      sort: (group) => group.name.toLowerCase(),
      bare: true,
      cell: (row) => (
        <TwoLines second={row.description}>
          <Link className="med" to={`/devices/groups/${row.id}`}>
            {row.color ? (
              <span className="swatch" style={{ background: row.color }} aria-hidden="true" />
            ) : null}
            {row.name}
          </Link>
        </TwoLines>
      ),
    },
    {
      head: words.members,
      sort: (group) => group.members.length,
      numeric: true,
      cell: (row) => (
        <Link to="/devices" search={{ group: row.id }}>
          {formatNumber(row.members.length)}
        </Link>
      ),
    },
    { head: text.devices.trustClass, sort: (group) => group.trust_class ?? '-' },
    { head: text.devices.privacyClass, sort: (group) => group.privacy_class ?? '-' },
    { head: text.devices.profile, sort: (group) => group.profile ?? '-' },
  ]
}
