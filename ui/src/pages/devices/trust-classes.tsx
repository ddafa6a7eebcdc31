// The list of trust classes.

import { useMemo } from 'react'
import type { Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { Link, useGo } from '@/session/link'
import { Answer, Tabs } from '@/components/answer'
import { DataTable, type ColumnDef } from '@/components/data-table'
import { Icon } from '@/components/icons'
import { Loaded } from '@/components/section'
import { Tag } from '@/components/state'
import { useText } from '@/text'
import { formatNumber } from '@/text/format'
import { devices as entry } from './entry'
import { trustClassOf } from './filters'

type TrustClass = Schemas['TrustClass']

export default function TrustClasses() {
  const text = useText()
  const go = useGo()
  const words = text.devices.classList
  const query = useGet('/trust-classes')
  const devices = useGet('/devices', {}, { every: 60_000 }).data?.data
  const groups = useGet('/device-groups', {}, { every: 60_000 }).data?.data
  const counts = useMemo(() => {
    const byId = new Map((groups ?? []).map((group) => [group.id, group]))
    const found = new Map<string, number>()
    for (const device of devices ?? []) {
      const name = trustClassOf(device, byId)
      found.set(name, (found.get(name) ?? 0) + 1)
    }
    return found
  }, [devices, groups])
  const yes = (value: boolean) => (value ? text.common.yes : <span className="dim">{text.common.no}</span>)
  // Columns of any type of cell.
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  const columns: ColumnDef<TrustClass, any>[] = [
    {
      id: 'name',
      header: text.common.name,
      accessorKey: 'name',
      meta: { label: '' },
      cell: ({ row: { original: each } }) => (
        <div className="two">
          <span>
            <Link className="med" to={`/devices/trust-classes/${each.id}`}>
              {each.name}
            </Link>
            {each.builtin ? <Tag>{words.builtin}</Tag> : null}
          </span>
          <small>{each.description}</small>
        </div>
      ),
    },
    {
      id: 'devices',
      header: text.devices.label,
      accessorFn: (each) => counts.get(each.name) ?? 0,
      meta: { numeric: true },
      cell: ({ row: { original: each }, getValue }) => (
        <Link to="/devices" search={{ class: each.name }}>
          {devices ? formatNumber(getValue() as number) : '-'}
        </Link>
      ),
    },
    { id: 'level', header: words.level, accessorKey: 'level', meta: { numeric: true } },
    {
      id: 'lan',
      header: words.lan,
      accessorFn: (each) => words.lanValues[each.lan_access] ?? each.lan_access,
    },
    {
      id: 'internet',
      header: words.internet,
      accessorFn: (each) => words.internetValues[each.internet] ?? each.internet,
    },
    {
      id: 'admin',
      header: words.admin,
      accessorKey: 'admin_access',
      cell: ({ getValue }) => yes(getValue() as boolean),
    },
    {
      id: 'dns',
      header: words.dnsLocal,
      accessorKey: 'dns_local',
      meta: { wide: true },
      cell: ({ getValue }) => yes(getValue() as boolean),
    },
    {
      id: 'privacy',
      header: text.devices.privacyClass,
      accessorFn: (each) => each.privacy_class ?? '-',
      meta: { wide: true },
    },
  ]
  return (
    <>
      <Answer
        question={words.question}
        actions={
          <Link className="btn btn--pri" to="/devices/trust-classes/new">
            <Icon name="plus" />
            {words.add}
          </Link>
        }
      >
        {query.data ? words.answer(query.data.data.length) : text.common.loading}
      </Answer>
      <Tabs entry={entry} />
      <Loaded query={query}>
        {(classes) => (
          <DataTable
            label={text.devices.tabs.trustClasses}
            rows={classes}
            columns={columns}
            id={(each) => each.id}
            sorting={[{ id: 'level', desc: true }]}
            open={(each) => go(`/devices/trust-classes/${each.id}`)}
          />
        )}
      </Loaded>
    </>
  )
}
