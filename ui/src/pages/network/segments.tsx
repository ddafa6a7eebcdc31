// Segments of the LAN, and the VLANs below them.

import type { Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { isSupported } from '@/api/operations'
import { Link, useGo } from '@/session/link'
import { answerOf, Page } from '@/components/answer'
import { LinkButton } from '@/components/link-button'
import { DataTable } from '@/components/data-table'
import type { Column } from '@/components/table'
import { LoadedSection, Empty } from '@/components/section'
import { StateWord } from '@/components/state'
import { Table } from '@/components/table'
import { TwoLines } from '@/components/two-lines'
import { useText } from '@/text'

type Segment = Schemas['Segment']

export default function Segments() {
  const text = useText()
  const words = text.network.segments
  const segments = useGet('/segments')
  return (
    <Page
      question={words.question}
      actions={
        <LinkButton kind="primary" needs="operator" to="/network/segments/new">
          {words.new}
        </LinkButton>
      }
      answer={answerOf(segments, text, (read) => (
        <Sentence segments={read} />
      ))}
    >
      <LoadedSection
        title={words.title}
        query={segments}
        empty={<Empty command={words.emptyCommand}>{words.empty}</Empty>}
      >
        {(all) => <List segments={all} />}
      </LoadedSection>
      {isSupported('GET /vlans') ? <Vlans /> : null}
    </Page>
  )
}

function Sentence({ segments }: { segments: Segment[] }) {
  const words = useText().network.segments
  if (segments.length === 0) return <>{words.none}</>
  const [counted, are] = words.answer(segments.length)
  return (
    <>
      <Link to="/network/segments">{counted}</Link>
      {are} {words.isolated(segments.filter((segment) => segment.isolation).length)}
    </>
  )
}

function List({ segments }: { segments: Segment[] }) {
  const text = useText()
  const go = useGo()
  const words = text.network.segments
  const { columns } = words
  const classes = useGet('/trust-classes', {}, { every: 60_000 }).data?.data ?? []
  const trust = (value: string | null) =>
    value === null ? words.noTrust : (classes.find((each) => each.id === value)?.name ?? value)
  const defined: Column<Segment>[] = [
    {
      head: columns.name,
      sort: (segment) => segment.name,
      bare: true,
      cell: (row) => (
        <Link className="med" to={`/network/segments/${row.id}`}>
          {row.name}
        </Link>
      ),
    },
    {
      head: columns.interface,
      sort: (segment) => segment.interface ?? '',
      cell: (row) => (
        <TwoLines second={row.vlan_id === null ? words.untagged : words.vlan(row.vlan_id)}>
          {row.interface ?? '-'}
        </TwoLines>
      ),
    },
    {
      head: columns.cidr,
      sort: (segment) => segment.cidr ?? '-',
      cell: (row) => <span className="mono">{row.cidr ?? '-'}</span>,
    },
    { head: columns.trust, sort: (segment) => trust(segment.trust_class) },
    { head: columns.isolation, sort: (segment) => (segment.isolation ? words.isolatedWord : words.open) },
    { head: columns.dhcp, sort: (segment) => (segment.dhcp ? text.common.on : text.common.off) },
  ]
  return (
    <DataTable
      label={words.title}
      rows={segments}
      columns={defined}
      id={(segment) => segment.id}
      open={(segment) => go(`/network/segments/${segment.id}`)}
    />
  )
}

function Vlans() {
  const text = useText()
  const words = text.network.segments
  const columns = words.vlanColumns
  const link = text.network.interfaces
  const vlans = useGet('/vlans')
  return (
    <LoadedSection
      title={words.vlans}
      hint={words.vlansHint}
      query={vlans}
      empty={<p className="quiet">{words.vlansEmpty}</p>}
    >
      {(all) => (
        <Table
          rows={all}
          id={(vlan) => `${vlan.parent} ${vlan.vlan_id}`}
          columns={[
            { head: columns.id, bare: true, className: 'med', cell: (vlan) => words.vlan(vlan.vlan_id) },
            { head: columns.parent, cell: (vlan) => vlan.parent },
            {
              head: columns.interface,
              cell: (vlan) =>
                vlan.interface === null ? (
                  <span className="dim">{words.noInterface}</span>
                ) : (
                  <span className="inline">
                    <Link to={`/network/interfaces/${encodeURIComponent(vlan.interface)}`}>
                      {vlan.interface}
                    </Link>
                    <StateWord state={vlan.up ? 'ok' : 'down'}>{vlan.up ? link.up : link.down}</StateWord>
                  </span>
                ),
            },
            { head: columns.lan, cell: (vlan) => (vlan.lan ? text.common.yes : text.common.no) },
            { head: columns.segment, cell: (vlan) => vlan.segment ?? '-' },
          ]}
        />
      )}
    </LoadedSection>
  )
}
