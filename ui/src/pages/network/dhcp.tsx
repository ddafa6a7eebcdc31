// DHCP: the leases, the reservations, and the settings of the server.

import type { Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { Link, useGo } from '@/session/link'
import { useSearchParams } from '@/session/search-params'
import { answerOf, Page } from '@/components/answer'
import { LinkButton } from '@/components/link-button'
import { DataTable } from '@/components/data-table'
import type { Column } from '@/components/table'
import { Check } from '@/components/fields'
import { LoadedSection, Empty } from '@/components/section'
import { StateWord, Tag, type State } from '@/components/state'
import { Clock } from '@/components/time'
import { TwoLines } from '@/components/two-lines'
import { useText } from '@/text'
import { DhcpServer } from './dhcp-server'
import { sizeOf, takenOf } from './range'

type Lease = Schemas['DhcpLease']
type Reservation = Schemas['DhcpReservation']

const STATES: Record<string, State> = {
  active: 'ok',
  declined: 'degraded',
  expired: 'idle',
  released: 'idle',
}

export default function Dhcp() {
  const text = useText()
  const words = text.network.dhcp
  const config = useGet('/dhcp')
  const leases = useGet('/dhcp/leases')
  const reservations = useGet('/dhcp/reservations')
  const [search, change] = useSearchParams()
  const activeOnly = search.leases === 'active'
  return (
    <Page
      question={words.question}
      actions={
        <LinkButton kind="primary" needs="operator" to="/network/dhcp/new">
          {words.newReservation}
        </LinkButton>
      }
      answer={answerOf(config, text, (read) => (
        <Sentence
          config={read}
          leases={leases.error ? undefined : leases.data?.data}
          reservations={reservations.error ? undefined : reservations.data?.data}
        />
      ))}
    >
      <LoadedSection
        title={words.leasesTitle}
        actions={
          <Check
            label={words.onlyActive}
            checked={activeOnly}
            onChange={(checked) => change({ leases: checked ? 'active' : undefined })}
          />
        }
        query={leases}
        empty={<p className="quiet">{words.leasesEmpty}</p>}
      >
        {(all) => <Leases leases={all.filter((lease) => !activeOnly || lease.state === 'active')} />}
      </LoadedSection>
      <LoadedSection
        title={words.reservationsTitle}
        query={reservations}
        empty={<Empty command={words.reservationsCommand}>{words.reservationsEmpty}</Empty>}
      >
        {(all) => <Reservations reservations={all} />}
      </LoadedSection>
      <LoadedSection title={words.server} hint={words.serverHint} query={config} lines={6}>
        {(read) => <DhcpServer config={read} etag={config.data?.etag ?? null} />}
      </LoadedSection>
    </Page>
  )
}

interface SentenceProps {
  config: Schemas['DhcpConfig']
  leases: Lease[] | undefined
  reservations: Reservation[] | undefined
}

function Sentence({ config, leases, reservations }: SentenceProps) {
  const text = useText()
  const words = text.network.dhcp
  const active = leases?.filter((lease) => lease.state === 'active') ?? []
  const size = sizeOf(config)
  const [counted, are] = words.leases(active.length)
  const [kept, stored] = words.reserved(reservations?.length ?? 0)
  const taken = takenOf(
    config,
    (leases ?? [])
      .filter((lease) => lease.state === 'active' || lease.state === 'declined')
      .map((lease) => lease.ip),
  )
  return (
    <>
      {config.enabled ? (config.interface ? words.on(config.interface) : words.onSegments) : words.off}{' '}
      {leases === undefined || (!config.enabled && leases.length === 0) ? null : (
        <>
          <Link to="/network/dhcp" search={{ leases: 'active' }}>
            {counted}
          </Link>
          {are}
          {size === null ? words.noRoom : words.room(Math.max(0, size - taken), size)}{' '}
        </>
      )}
      {reservations === undefined ? null : `${kept}${stored}`}
    </>
  )
}

function Leases({ leases }: { leases: Lease[] }) {
  const text = useText()
  const words = text.network.dhcp
  const { columns } = words
  const defined: Column<Lease>[] = [
    {
      head: columns.ip,
      sort: (lease) => lease.ip,
      bare: true,
      cell: (row) => <span className="mono med">{row.ip}</span>,
    },
    {
      head: columns.host,
      sort: (lease) => lease.hostname ?? '',
      cell: (row) => (
        <TwoLines second={row.vendor_class}>
          {row.device_id ? (
            <Link to={`/devices/${row.device_id}`}>{row.hostname ?? row.mac}</Link>
          ) : (
            <span>{row.hostname ?? '-'}</span>
          )}
        </TwoLines>
      ),
    },
    { head: columns.mac, sort: (lease) => lease.mac, cell: (row) => <span className="mono">{row.mac}</span> },
    {
      head: columns.state,
      sort: (lease) => lease.state,
      cell: (row) => (
        <StateWord state={STATES[row.state] ?? 'unknown'}>{words.states[row.state] ?? row.state}</StateWord>
      ),
    },
    {
      head: columns.expires,
      sort: (lease) => lease.expires_at,
      cell: (row) => <Clock time={row.expires_at} />,
    },
    {
      head: columns.reserved,
      sort: (lease) => lease.reserved,
      cell: (row) => <Reserved lease={row} />,
    },
  ]
  return (
    <DataTable
      label={words.leasesTitle}
      rows={leases}
      columns={defined}
      id={(lease) => `${lease.ip} ${lease.mac}`}
    />
  )
}

function Reservations({ reservations }: { reservations: Reservation[] }) {
  const text = useText()
  const go = useGo()
  const words = text.network.dhcp
  const { columns } = words
  const to = (each: Reservation) => `/network/dhcp/${encodeURIComponent(each.mac ?? '')}`
  const defined: Column<Reservation>[] = [
    {
      head: columns.mac,
      sort: (each) => each.mac ?? '',
      bare: true,
      cell: (row) => (
        <Link className="mono med" to={to(row)}>
          {row.mac ?? '-'}
        </Link>
      ),
    },
    {
      head: columns.ip,
      sort: (each) => each.ip ?? '',
      cell: (row) => <span className="mono">{row.ip ?? '-'}</span>,
    },
    { head: columns.host, sort: (each) => each.hostname ?? '', cell: (row) => row.hostname ?? '-' },
    { head: columns.comment, sort: (each) => each.comment || '-' },
  ]
  return (
    <DataTable
      label={words.reservationsTitle}
      rows={reservations}
      columns={defined}
      id={(each) => each.id}
      open={(each) => go(to(each))}
    />
  )
}

function Reserved({ lease }: { lease: Lease }) {
  const words = useText().network.dhcp
  return lease.reserved ? (
    <Link to={`/network/dhcp/${encodeURIComponent(lease.mac)}`}>
      <Tag>{words.isReserved}</Tag>
    </Link>
  ) : (
    <Link
      className="sm"
      to="/network/dhcp/new"
      search={{
        mac: lease.mac,
        ip: lease.ip,
        hostname: lease.hostname ?? undefined,
        device: lease.device_id ?? undefined,
      }}
    >
      {words.reserve}
    </Link>
  )
}
