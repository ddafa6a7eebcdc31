// DHCP: the leases, the reservations, and the settings of the server.

import type { Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { Link, useGo } from '@/session/link'
import { useSearchParams } from '@/session/search-params'
import { Answer, Tabs } from '@/components/answer'
import { LinkButton } from '@/components/link-button'
import { DataTable, type ColumnDef } from '@/components/data-table'
import { Check } from '@/components/fields'
import { Empty, Loaded, Section } from '@/components/section'
import { StateWord, Tag, type State } from '@/components/state'
import { Clock } from '@/components/time'
import { useText } from '@/text'
import { DhcpServer } from './dhcp-server'
import { network } from './entry'
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
    <>
      <Answer
        question={words.question}
        actions={
          <LinkButton kind="primary" needs="operator" to="/network/dhcp/new">
            {words.newReservation}
          </LinkButton>
        }
      >
        {config.error ? (
          text.network.unknownAnswer
        ) : config.data ? (
          <Sentence
            config={config.data.data}
            leases={leases.error ? undefined : leases.data?.data}
            reservations={reservations.error ? undefined : reservations.data?.data}
          />
        ) : (
          text.common.loading
        )}
      </Answer>
      <Tabs entry={network} />
      <Section
        title={words.leasesTitle}
        actions={
          <Check
            label={words.onlyActive}
            checked={activeOnly}
            onChange={(checked) => change({ leases: checked ? 'active' : undefined })}
          />
        }
      >
        <Loaded
          query={leases}
          isEmpty={(all) => all.length === 0}
          empty={<p className="quiet">{words.leasesEmpty}</p>}
        >
          {(all) => <Leases leases={all.filter((lease) => !activeOnly || lease.state === 'active')} />}
        </Loaded>
      </Section>
      <Section title={words.reservationsTitle}>
        <Loaded
          query={reservations}
          isEmpty={(all) => all.length === 0}
          empty={<Empty command={words.reservationsCommand}>{words.reservationsEmpty}</Empty>}
        >
          {(all) => <Reservations reservations={all} />}
        </Loaded>
      </Section>
      <Section title={words.server} hint={words.serverHint}>
        <Loaded query={config} lines={6}>
          {(read) => <DhcpServer config={read} etag={config.data?.etag ?? null} />}
        </Loaded>
      </Section>
    </>
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
  const defined: ColumnDef<Lease>[] = [
    {
      id: 'ip',
      header: columns.ip,
      accessorFn: (lease) => lease.ip,
      meta: { label: '' },
      cell: ({ row: { original: lease } }) => <span className="mono med">{lease.ip}</span>,
    },
    {
      id: 'host',
      header: columns.host,
      accessorFn: (lease) => lease.hostname ?? '',
      cell: ({ row: { original: lease } }) => (
        <span className="two">
          {lease.device_id ? (
            <Link to={`/devices/${lease.device_id}`}>{lease.hostname ?? lease.mac}</Link>
          ) : (
            <span>{lease.hostname ?? '-'}</span>
          )}
          {lease.vendor_class ? <small>{lease.vendor_class}</small> : null}
        </span>
      ),
    },
    {
      id: 'mac',
      header: columns.mac,
      accessorFn: (lease) => lease.mac,
      cell: ({ row: { original: lease } }) => <span className="mono">{lease.mac}</span>,
    },
    {
      id: 'state',
      header: columns.state,
      accessorFn: (lease) => lease.state,
      cell: ({ row: { original: lease } }) => (
        <StateWord state={STATES[lease.state] ?? 'unknown'}>
          {words.states[lease.state] ?? lease.state}
        </StateWord>
      ),
    },
    {
      id: 'expires',
      header: columns.expires,
      accessorFn: (lease) => lease.expires_at,
      cell: ({ row: { original: lease } }) => <Clock time={lease.expires_at} />,
    },
    {
      id: 'reserved',
      header: columns.reserved,
      accessorFn: (lease) => lease.reserved,
      cell: ({ row: { original: lease } }) =>
        lease.reserved ? (
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
        ),
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
  const defined: ColumnDef<Reservation>[] = [
    {
      id: 'mac',
      header: columns.mac,
      accessorFn: (each) => each.mac ?? '',
      meta: { label: '' },
      cell: ({ row: { original: each } }) => (
        <Link className="mono med" to={to(each)}>
          {each.mac ?? '-'}
        </Link>
      ),
    },
    {
      id: 'ip',
      header: columns.ip,
      accessorFn: (each) => each.ip ?? '',
      cell: ({ row: { original: each } }) => <span className="mono">{each.ip ?? '-'}</span>,
    },
    {
      id: 'host',
      header: columns.host,
      accessorFn: (each) => each.hostname ?? '',
      cell: ({ row: { original: each } }) => each.hostname ?? '-',
    },
    { id: 'comment', header: columns.comment, accessorFn: (each) => each.comment || '-' },
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
