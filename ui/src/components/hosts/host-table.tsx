// Hosts as a table; cards on a phone.

import { useMemo } from 'react'
import { Link } from '@/session/link'
import { DataTable, type ColumnDef } from '@/components/data-table'
import { useText, type Text } from '@/text'
import { HostActions } from './host-actions'
import { HostPath, HostRate, HostSeen, HostTags } from './host-words'
import { addressOf, nameOf, type Host } from './hosts'

interface Props {
  label: string
  hosts: Host[]
  /** The button makes a device at once. */
  once?: boolean
  /** Names of devices by their ids, for hosts that are one. */
  devices?: ReadonlyMap<string, string>
}

export function HostTable({ label, hosts, once, devices }: Props) {
  const text = useText()
  const columns = useMemo(() => columnsOf(text, once, devices), [text, once, devices])
  return (
    <DataTable label={label} className="tbl--hosts" rows={hosts} columns={columns} id={(host) => host.id} />
  )
}

function columnsOf(
  text: Text,
  once: boolean | undefined,
  devices: Props['devices'],
  // Columns of any type of cell.
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
): ColumnDef<Host, any>[] {
  const words = text.hosts
  const { columns } = words
  return [
    {
      id: 'name',
      header: columns.host,
      accessorFn: (host) => nameOf(host).toLowerCase(),
      meta: { label: '' },
      cell: ({ row: { original: host } }) => (
        <div className="two">
          <span>
            <Link className="med" to={`/devices/hosts/${host.id}`}>
              {nameOf(host)}
            </Link>{' '}
            <HostTags host={host} />
          </span>
          {nameOf(host) === host.mac ? null : <small className="mono">{host.mac}</small>}
        </div>
      ),
    },
    {
      id: 'address',
      header: columns.address,
      accessorFn: addressOf,
      cell: ({ row: { original: host } }) => (
        <span className="two">
          <span>{addressOf(host) ?? <span className="dim">{words.noAddress}</span>}</span>
          <small>{host.interface}</small>
        </span>
      ),
    },
    {
      id: 'vendor',
      header: columns.vendor,
      accessorFn: (host) => host.vendor ?? '',
      cell: ({ row: { original: host } }) => host.vendor ?? <span className="dim">{words.unknown}</span>,
    },
    {
      id: 'seen',
      header: columns.seen,
      accessorFn: (host) => host.last_seen,
      cell: ({ row: { original: host } }) => <HostSeen host={host} />,
    },
    {
      id: 'path',
      header: columns.path,
      accessorFn: (host) => host.path?.treatment ?? '',
      cell: ({ row: { original: host } }) => <HostPath host={host} />,
    },
    {
      id: 'rate',
      header: columns.rate,
      accessorFn: (host) => (host.rate ? host.rate.received_bps + host.rate.sent_bps : -1),
      cell: ({ row: { original: host } }) => <HostRate host={host} />,
    },
    ...(devices
      ? [
          {
            id: 'device',
            header: columns.device,
            accessorFn: (host: Host) =>
              host.device_id ? (devices.get(host.device_id) ?? host.device_id) : '',
            cell: ({ row: { original: host } }: { row: { original: Host } }) =>
              host.device_id ? (
                <Link to={`/devices/${host.device_id}`}>{devices.get(host.device_id) ?? host.device_id}</Link>
              ) : (
                <span className="dim">{words.noDevice}</span>
              ),
          } satisfies ColumnDef<Host, string>,
        ]
      : []),
    {
      id: 'actions',
      header: columns.actions,
      enableSorting: false,
      meta: { label: '', numeric: true },
      cell: ({ row: { original: host } }) => <HostActions host={host} once={once} />,
    },
  ]
}
