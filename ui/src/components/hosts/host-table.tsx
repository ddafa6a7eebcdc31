// Hosts as a table; cards on a phone.

import { useMemo } from 'react'
import { Link } from '@/session/link'
import { DataTable } from '@/components/data-table'
import type { Column } from '@/components/table'
import { TwoLines } from '@/components/two-lines'
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

function columnsOf(text: Text, once: boolean | undefined, devices: Props['devices']): Column<Host>[] {
  const words = text.hosts
  const { columns } = words
  return [
    {
      head: columns.host,
      sort: (host) => nameOf(host).toLowerCase(),
      bare: true,
      cell: (row) => <HostName host={row} />,
    },
    {
      head: columns.address,
      sort: addressOf,
      cell: (row) => (
        <TwoLines second={row.interface}>
          {addressOf(row) ?? <span className="dim">{words.noAddress}</span>}
        </TwoLines>
      ),
    },
    {
      head: columns.vendor,
      sort: (host) => host.vendor ?? '',
      cell: (row) => row.vendor ?? <span className="dim">{words.unknown}</span>,
    },
    { head: columns.seen, sort: (host) => host.last_seen, cell: (row) => <HostSeen host={row} /> },
    {
      head: columns.path,
      sort: (host) => host.path?.treatment ?? '',
      cell: (row) => <HostPath host={row} />,
    },
    {
      head: columns.rate,
      sort: (host) => (host.rate ? host.rate.received_bps + host.rate.sent_bps : -1),
      cell: (row) => <HostRate host={row} />,
    },
    ...(devices
      ? [
          {
            head: columns.device,
            sort: (host: Host) => (host.device_id ? (devices.get(host.device_id) ?? host.device_id) : ''),
            cell: (row) =>
              row.device_id ? (
                <Link to={`/devices/${row.device_id}`}>{devices.get(row.device_id) ?? row.device_id}</Link>
              ) : (
                <span className="dim">{words.noDevice}</span>
              ),
          } satisfies Column<Host>,
        ]
      : []),
    {
      head: columns.actions,
      bare: true,
      numeric: true,
      cell: (row) => <HostActions host={row} once={once} />,
    },
  ]
}

function HostName({ host }: { host: Host }) {
  const name = nameOf(host)
  return (
    <TwoLines second={name === host.mac ? null : <span className="mono">{host.mac}</span>}>
      <Link className="med" to={`/devices/hosts/${host.id}`}>
        {name}
      </Link>{' '}
      <HostTags host={host} />
    </TwoLines>
  )
}
