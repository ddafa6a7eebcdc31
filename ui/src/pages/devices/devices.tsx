// The list of devices.

import { useMemo } from 'react'
import type { Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { Link, useGo } from '@/session/link'
import { useSearchParams } from '@/session/search-params'
import { useVerdict } from '@/components/verdict'
import { Page } from '@/components/answer'
import { DataTable } from '@/components/data-table'
import type { Column } from '@/components/table'
import { Icon } from '@/components/icons'
import { Empty, Loaded, Skeleton } from '@/components/section'
import { StateWord, Tag, type State } from '@/components/state'
import { Age } from '@/components/time'
import { TwoLines } from '@/components/two-lines'
import { FilterBox, FilterSelect } from '@/components/filter-fields'
import { useText, type Text } from '@/text'
import { formatNumber } from '@/text/format'
import { CurrentPath } from './current-path'
import {
  addressKey,
  choicesOf,
  filtersOf,
  passes,
  passesPath,
  pathFiltersOf,
  pathKey,
  trustClassOf,
} from './filters'
import { usePaths, type DevicePath } from './use-paths'

type Device = Schemas['Device']

const NO_DEVICES: Device[] = []

export default function Devices() {
  const text = useText()
  const query = useGet('/devices', {}, { every: 60_000 })
  return (
    <Page
      question={text.devices.question}
      actions={
        <Link className="btn btn--pri" to="/devices/new">
          <Icon name="plus" />
          {text.devices.add}
        </Link>
      }
      answer={<Summary known={query.data?.data.length} />}
    >
      <Loaded
        query={query}
        lines={8}
        empty={
          <Empty
            action={
              <Link className="btn" to="/devices/new">
                {text.devices.add}
              </Link>
            }
            command={`gateway-ctl devices create '{"name":"laptop","mac":"02:00:00:00:00:0a"}'`}
          >
            {text.devices.empty}
          </Empty>
        }
      >
        {(all) => <List all={all} />}
      </Loaded>
    </Page>
  )
}

/** The counts of the verdict. Without a fresh one there is only the number of records. */
function Summary({ known }: { known: number | undefined }) {
  const text = useText()
  const { last, word } = useVerdict()
  if (known === undefined) return <>{text.common.loading}</>
  const fresh = last !== undefined && last.word === word && word !== 'UNKNOWN'
  const pieces = fresh ? text.devices.answer(known, last.counts) : [text.devices.answerUnknown(known)]
  return (
    <>
      {pieces.map((piece, index) =>
        typeof piece === 'string' ? (
          <span key={index}>{piece}</span>
        ) : (
          <Link key={index} to="/devices" search={{ decision: piece[1] }}>
            {piece[0]}
          </Link>
        ),
      )}
    </>
  )
}

function List({ all }: { all: Device[] }) {
  const text = useText()
  const go = useGo()
  const [search] = useSearchParams()
  const groups = useGet('/device-groups', {}, { every: 60_000 }).data?.data
  const groupById = useMemo(() => new Map((groups ?? []).map((group) => [group.id, group])), [groups])
  const { q, status, group, class: trustClass, decision, policy, egress } = search
  const paths = usePaths()
  const filtered = useMemo(() => {
    const filters = filtersOf({ q, status, group, class: trustClass })
    const list = all.filter((device) => passes(device, filters, groupById))
    return list.length > 0 ? list : NO_DEVICES
  }, [all, q, status, group, trustClass, groupById])
  const rows = useMemo(() => {
    const filters = pathFiltersOf({ decision, policy, egress })
    const list = filtered.filter((device) => passesPath(paths.byId.get(device.id), filters))
    return list.length > 0 ? list : NO_DEVICES
  }, [filtered, paths.byId, decision, policy, egress])
  const failed = paths.error !== null
  const columns = useMemo(
    () => columnsOf(text, groupById, paths.byId, failed),
    [text, groupById, paths.byId, failed],
  )
  const asked = decision !== undefined || policy !== undefined || egress !== undefined
  return (
    <div className="sec">
      <FilterBar paths={paths.list ?? []} />
      <p className="dim sm" role="status">
        {text.devices.shown(formatNumber(rows.length), formatNumber(all.length))}
        {asked && paths.pending ? ` ${text.devices.asking}` : ''}
        {failed ? ` ${text.devices.pathsFailed(paths.error?.message ?? '')}` : ''}
      </p>
      {rows.length === 0 && asked && paths.pending ? (
        <Skeleton lines={6} />
      ) : rows.length === 0 ? (
        <NothingFound />
      ) : (
        <DataTable
          label={text.devices.label}
          className="tbl--devices"
          rows={rows}
          columns={columns}
          id={(device) => device.id}
          open={(device) => go(`/devices/${device.id}`)}
        />
      )}
    </div>
  )
}

const FILTERS = ['q', 'status', 'group', 'class', 'decision', 'policy', 'egress']

function NothingFound() {
  const text = useText()
  const [, change] = useSearchParams()
  const clear = () => change(Object.fromEntries(FILTERS.map((name) => [name, undefined])))
  return (
    <Empty
      action={
        <button type="button" className="btn" onClick={clear}>
          {text.devices.clear}
        </button>
      }
    >
      {text.devices.nothing}
    </Empty>
  )
}

function FilterBar({ paths }: { paths: readonly DevicePath[] }) {
  const text = useText()
  const [search, change] = useSearchParams()
  const groups = useGet('/device-groups', {}, { every: 60_000 }).data?.data
  const classes = useGet('/trust-classes', {}, { every: 60_000 }).data?.data
  const choices = useMemo(() => choicesOf(paths), [paths])
  const selects: [string, string, string, (readonly [string, string])[]][] = [
    ['status', text.devices.status, text.devices.anyStatus, Object.entries(text.devices.statuses)],
    [
      'group',
      text.devices.group,
      text.devices.anyGroup,
      (groups ?? []).map((each) => [each.id, each.name] as const),
    ],
    [
      'class',
      text.devices.trustClass,
      text.devices.anyClass,
      (classes ?? []).map((each) => [each.name, each.name] as const),
    ],
    ['decision', text.devices.path, text.devices.anyPath, Object.entries(text.devices.decisions)],
    [
      'policy',
      text.devices.policy,
      text.devices.anyPolicy,
      [...choices.policies, ['none', text.devices.noPolicy]],
    ],
    ['egress', text.devices.egress, text.devices.anyEgress, choices.egresses],
  ]
  return (
    <div className="filters" role="search">
      <FilterBox
        label={text.common.filter}
        placeholder={text.devices.find}
        value={search.q}
        onChange={(q) => change({ q })}
      />
      {selects.map(([name, label, any, options]) => (
        <FilterSelect
          key={name}
          label={label}
          any={any}
          options={options}
          value={search[name]}
          onChange={(value) => change({ [name]: value })}
        />
      ))}
    </div>
  )
}

const STATUS: Record<string, State> = {
  known: 'idle',
  new: 'degraded',
  quarantined: 'blocked',
  blocked: 'blocked',
}

export function DeviceStatusWord({ status }: { status: string }) {
  const text = useText()
  const word = text.devices.statuses[status] ?? status
  return status === 'known' ? (
    <span>{word}</span>
  ) : (
    <StateWord state={STATUS[status] ?? 'unknown'}>{word}</StateWord>
  )
}

function columnsOf(
  text: Text,
  groups: ReadonlyMap<string, Schemas['DeviceGroup']>,
  paths: ReadonlyMap<string, DevicePath>,
  failed: boolean,
): Column<Device>[] {
  const groupsOf = (device: Device) =>
    (device.groups ?? []).map((id) => groups.get(id)?.name ?? id).join(', ')
  return [
    {
      head: text.common.name,
      sort: (device) => device.name.toLowerCase(),
      bare: true,
      cell: (row) => (
        <TwoLines second={row.hostname ?? row.vendor ?? row.mac ?? '-'}>
          <Link className="med" to={`/devices/${row.id}`}>
            {row.name}
          </Link>
          {row.randomized_mac ? <Tag>{text.devices.randomized}</Tag> : null}
        </TwoLines>
      ),
    },
    { head: text.devices.address, sort: addressKey, cell: (row) => row.ips?.[0] ?? '-' },
    { head: text.devices.groups, sort: groupsOf, wide: true, cell: (row) => groupsOf(row) || '-' },
    {
      head: text.devices.trustClass,
      sort: (device) => trustClassOf(device, groups),
      cell: (row) => <span className={row.trust_class ? undefined : 'dim'}>{trustClassOf(row, groups)}</span>,
    },
    { head: text.devices.status, sort: 'status', cell: (row) => <DeviceStatusWord status={row.status} /> },
    {
      head: text.devices.path,
      sort: (device) => pathKey(paths.get(device.id)),
      cell: (row) => <CurrentPath path={paths.get(row.id)} failed={failed} />,
    },
    {
      head: text.devices.lastSeen,
      sort: (device) => device.last_seen ?? '',
      wide: true,
      numeric: true,
      cell: (row) => (row.last_seen ? <Age time={row.last_seen} /> : <span className="dim">-</span>),
    },
  ]
}
