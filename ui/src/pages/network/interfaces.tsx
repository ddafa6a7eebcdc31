// The interfaces of the host, and the programs that the gateway needs on it.

import type { Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { isSupported } from '@/api/operations'
import { Link, useGo } from '@/session/link'
import { useSearchParams } from '@/session/search-params'
import { answerOf, Page } from '@/components/answer'
import { DataTable } from '@/components/data-table'
import type { Column } from '@/components/table'
import { LoadedSection } from '@/components/section'
import { StateWord } from '@/components/state'
import { Table } from '@/components/table'
import { TwoLines } from '@/components/two-lines'
import { useText } from '@/text'
import { AccessPoint } from './access-point'

type Interface = Schemas['Interface']

export default function Interfaces() {
  const text = useText()
  const words = text.network.interfaces
  const interfaces = useGet('/interfaces', {}, { every: 5000 })
  const [search, change] = useSearchParams()
  return (
    <Page
      question={words.question}
      answer={answerOf(interfaces, text, (read) => (
        <Sentence interfaces={read} />
      ))}
    >
      <LoadedSection
        title={words.title}
        actions={
          search.up === undefined ? null : (
            <button type="button" className="link" onClick={() => change({ up: undefined })}>
              {text.common.all}
            </button>
          )
        }
        query={interfaces}
        lines={5}
      >
        {(all) => <List interfaces={all.filter((each) => search.up === undefined || each.up)} />}
      </LoadedSection>
      <AccessPoint lans={namesOf(interfaces.data?.data ?? [], 'lan')} />
      {isSupported('GET /services') ? <Programs /> : null}
    </Page>
  )
}

/** The names of interfaces with a role. */
function namesOf(interfaces: readonly Interface[], role: Interface['role']): string[] {
  return interfaces.filter((each) => each.role === role).map((each) => each.name)
}

function Sentence({ interfaces }: { interfaces: Interface[] }) {
  const words = useText().network.interfaces
  const up = interfaces.filter((each) => each.up).length
  const uplinks = namesOf(interfaces, 'uplink')
  const lans = namesOf(interfaces, 'lan')
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
  const defined: Column<Interface>[] = [
    {
      head: columns.name,
      sort: (each) => each.name,
      bare: true,
      cell: (row) => (
        <TwoLines second={kindOf(row)}>
          <Link className="med" to={`/network/interfaces/${encodeURIComponent(row.name)}`}>
            {row.name}
          </Link>
        </TwoLines>
      ),
    },
    { head: columns.role, sort: (each) => each.role, cell: (row) => words.roles[row.role] },
    {
      head: columns.state,
      sort: (each) => each.up,
      cell: (row) => <StateWord state={row.up ? 'ok' : 'down'}>{row.up ? words.up : words.down}</StateWord>,
    },
    { head: columns.addresses, cell: (row) => <Addresses addresses={row.addresses} /> },
    {
      head: columns.method,
      sort: (each) => each.method,
      cell: (row) => words.methods[row.method] ?? row.method,
    },
    { head: columns.mtu, sort: (each) => each.mtu, numeric: true },
    { head: columns.mac, wide: true, cell: (row) => <span className="mono">{row.mac ?? '-'}</span> },
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
    <LoadedSection title={words.programs} hint={words.programsHint} query={services}>
      {(all) => (
        <Table
          rows={all}
          id={(service) => service.name}
          columns={[
            {
              head: columns.name,
              bare: true,
              cell: (service) => (
                <TwoLines second={service.unit}>
                  <span className="med">{service.name}</span>
                </TwoLines>
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
    </LoadedSection>
  )
}
