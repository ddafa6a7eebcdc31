// The list of trust classes.

import { useMemo } from 'react'
import type { Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { Link, useGo } from '@/session/link'
import { Page } from '@/components/answer'
import { DataTable } from '@/components/data-table'
import type { Column } from '@/components/table'
import { Icon } from '@/components/icons'
import { Loaded } from '@/components/section'
import { Tag } from '@/components/state'
import { TwoLines } from '@/components/two-lines'
import { useText } from '@/text'
import { formatNumber } from '@/text/format'
import { trustClassOf } from './filters'

type TrustClass = Schemas['TrustClass']

export default function TrustClasses() {
  const text = useText()
  const go = useGo()
  const words = text.devices.classList
  const query = useGet('/trust-classes')
  const columns = useColumns()
  return (
    <Page
      question={words.question}
      actions={
        <Link className="btn btn--pri" to="/devices/trust-classes/new">
          <Icon name="plus" />
          {words.add}
        </Link>
      }
      answer={query.data ? words.answer(query.data.data.length) : text.common.loading}
    >
      <Loaded query={query}>
        {(classes) => (
          <DataTable
            label={text.devices.tabs.trustClasses}
            rows={classes}
            columns={columns}
            id={(each) => each.id}
            open={(each) => go(`/devices/trust-classes/${each.id}`)}
          />
        )}
      </Loaded>
    </Page>
  )
}

function useColumns(): Column<TrustClass>[] {
  const text = useText()
  const words = text.devices.classList
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
  return [
    {
      head: text.common.name,
      sort: 'name',
      bare: true,
      cell: (row) => (
        <TwoLines second={row.description}>
          <Link className="med" to={`/devices/trust-classes/${row.id}`}>
            {row.name}
          </Link>
          {row.builtin ? <Tag>{words.builtin}</Tag> : null}
        </TwoLines>
      ),
    },
    {
      head: text.devices.label,
      sort: ({ name }) => counts.get(name) ?? 0,
      numeric: true,
      cell: ({ name }) => (
        <Link to="/devices" search={{ class: name }}>
          {devices ? formatNumber(counts.get(name) ?? 0) : '-'}
        </Link>
      ),
    },
    { head: words.level, sort: 'level', sorted: 'desc', numeric: true },
    { head: words.lan, sort: (each) => words.lanValues[each.lan_access] ?? each.lan_access },
    { head: words.internet, sort: (each) => words.internetValues[each.internet] },
    { head: words.admin, sort: 'admin_access', cell: (row) => yes(row.admin_access) },
    { head: words.dnsLocal, sort: 'dns_local', wide: true, cell: (row) => yes(row.dns_local) },
    { head: text.devices.privacyClass, sort: (each) => each.privacy_class ?? '-', wide: true },
  ]
}
