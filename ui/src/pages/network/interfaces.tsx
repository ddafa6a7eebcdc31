// The interfaces of the host, and the programs that the gateway needs on it.

import type { Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { isSupported } from '@/api/operations'
import { Link, useGo } from '@/session/link'
import { useSearchParams } from '@/session/search-params'
import { Answer, Tabs } from '@/components/answer'
import { DataTable, type ColumnDef } from '@/components/data-table'
import { Loaded, Section } from '@/components/section'
import { StateWord } from '@/components/state'
import { Table } from '@/components/table'
import { useText } from '@/text'
import { network } from './entry'

type Interface = Schemas['Interface']

export default function Interfaces() {
  const text = useText()
  const words = text.network.interfaces
  const interfaces = useGet('/interfaces', {}, { every: 5000 })
  const [search, change] = useSearchParams()
  return (
    <>
      <Answer question={words.question}>
        {interfaces.error ? (
          text.network.unknownAnswer
        ) : interfaces.data ? (
          <Sentence interfaces={interfaces.data.data} />
        ) : (
          text.common.loading
        )}
      </Answer>
      <Tabs entry={network} />
      <Section
        title={words.title}
        actions={
          search.up === undefined ? null : (
            <button type="button" className="link" onClick={() => change({ up: undefined })}>
              {text.common.all}
            </button>
          )
        }
      >
        <Loaded query={interfaces} lines={5}>
          {(all) => <List interfaces={all.filter((each) => search.up === undefined || each.up)} />}
        </Loaded>
      </Section>
      {isSupported('GET /services') ? <Programs /> : null}
    </>
  )
}

function Sentence({ interfaces }: { interfaces: Interface[] }) {
  const words = useText().network.interfaces
  const up = interfaces.filter((each) => each.up).length
  const named = (role: string) => interfaces.filter((each) => each.role === role).map((each) => each.name)
  const uplinks = named('uplink')
  const lans = named('lan')
  const [counted, are] = words.answer(up, interfaces.length)
  return (
    <>
      <Link to="/network/interfaces" search={{ up: 'yes' }}>
        {counted}
      </Link>
      {are}{' '}
      {uplinks.length === 0
        ? words.noUplink
        : uplinks.length === 1
          ? words.uplinks(uplinks.join(', '))
          : words.manyUplinks(uplinks.join(', '))}{' '}
      {lans.length === 0 ? words.noLan : words.lans(lans.join(', '))}
    </>
  )
}

function List({ interfaces }: { interfaces: Interface[] }) {
  const text = useText()
  const go = useGo()
  const words = text.network.interfaces
  const { columns } = words
  const kindOf = (each: Interface) =>
    [
      each.kind,
      each.vlan_id !== null && each.parent ? words.vlanOf(each.parent, each.vlan_id) : '',
      each.master ? words.portOf(each.master) : '',
    ]
      .filter(Boolean)
      .join(', ')
  const defined: ColumnDef<Interface>[] = [
    {
      id: 'name',
      header: columns.name,
      accessorFn: (each) => each.name,
      meta: { label: '' },
      cell: ({ row: { original: each } }) => (
        <span className="two">
          <Link className="med" to={`/network/interfaces/${encodeURIComponent(each.name)}`}>
            {each.name}
          </Link>
          <small>{kindOf(each)}</small>
        </span>
      ),
    },
    {
      id: 'role',
      header: columns.role,
      accessorFn: (each) => each.role,
      cell: ({ row: { original: each } }) => words.roles[each.role] ?? each.role,
    },
    {
      id: 'state',
      header: columns.state,
      accessorFn: (each) => each.up,
      cell: ({ row: { original: each } }) => (
        <StateWord state={each.up ? 'ok' : 'down'}>{each.up ? words.up : words.down}</StateWord>
      ),
    },
    {
      id: 'addresses',
      header: columns.addresses,
      enableSorting: false,
      cell: ({ row: { original: each } }) => <Addresses addresses={each.addresses} />,
    },
    {
      id: 'method',
      header: columns.method,
      accessorFn: (each) => each.method,
      cell: ({ row: { original: each } }) => words.methods[each.method] ?? each.method,
    },
    {
      id: 'mtu',
      header: columns.mtu,
      accessorFn: (each) => each.mtu,
      meta: { numeric: true },
    },
    {
      id: 'mac',
      header: columns.mac,
      enableSorting: false,
      meta: { wide: true },
      cell: ({ row: { original: each } }) => <span className="mono">{each.mac ?? '-'}</span>,
    },
  ]
  return (
    <DataTable
      label={words.title}
      rows={interfaces}
      columns={defined}
      id={(each) => each.name}
      open={(each) => go(`/network/interfaces/${encodeURIComponent(each.name)}`)}
    />
  )
}

export function Addresses({ addresses }: { addresses: string[] }) {
  if (addresses.length === 0) return <>-</>
  return (
    <span className="two mono">
      {addresses.map((address) => (
        <span key={address}>{address}</span>
      ))}
    </span>
  )
}

function Programs() {
  const text = useText()
  const words = text.network.interfaces
  const columns = words.programColumns
  const services = useGet('/services', {}, { every: 60_000 })
  return (
    <Section title={words.programs} hint={words.programsHint}>
      <Loaded query={services}>
        {(all) => (
          <Table
            rows={all}
            id={(service) => service.name}
            columns={[
              {
                head: columns.name,
                bare: true,
                cell: (service) => (
                  <span className="two">
                    <span className="med">{service.name}</span>
                    {service.unit ? <small>{service.unit}</small> : null}
                  </span>
                ),
              },
              {
                head: columns.installed,
                cell: (service) =>
                  service.installed ? words.installed : <span className="dim">{words.notInstalled}</span>,
              },
              {
                head: columns.running,
                cell: (service) =>
                  service.running === null ? (
                    '-'
                  ) : service.running ? (
                    words.running
                  ) : (
                    <span className="dim">{words.notRunning}</span>
                  ),
              },
              { head: columns.version, cell: (service) => service.version ?? '-' },
              { head: columns.required, cell: (service) => service.required_by.join(', ') || '-' },
            ]}
          />
        )}
      </Loaded>
    </Section>
  )
}
