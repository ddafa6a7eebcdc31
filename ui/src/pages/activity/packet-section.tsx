// The packets of a capture, newest first, with what the gateway decided on each. Only the rows in view are drawn.

import { useMemo, useState, useSyncExternalStore } from 'react'
import { readLines } from '@/api/lines'
import { Button } from '@/components/button'
import { DataTable } from '@/components/data-table'
import { FilterBox, FilterSelect } from '@/components/filter-fields'
import { Failure, Section } from '@/components/section'
import { StateWord } from '@/components/state'
import type { Column } from '@/components/table'
import { TwoLines } from '@/components/two-lines'
import { decisionState, egressOf } from '@/components/why/evaluate'
import { useSearchParams } from '@/session/search-params'
import { useText, type Text } from '@/text'
import { formatNumber, formatTime } from '@/text/format'
import { endOf, matching, MOST, PacketStore, type Packet, type PacketState } from './packets'

export function PacketSection({ id }: { id: string }) {
  const words = useText().captures
  const store = useMemo(
    () =>
      new PacketStore((signal, take) =>
        readLines('/api/v1/diagnostics/capture/{id}/stream'.replace('{id}', id), signal, take),
      ),
    [id],
  )
  const state = useSyncExternalStore(store.subscribe, store.snapshot)
  const [held, setHeld] = useState<PacketState | null>(null)
  const [search, change] = useSearchParams()
  const { packets } = held ?? state
  const shown = matching(packets, { words: search.words, decision: search.decision, proto: search.proto })
  const waiting = held ? state.last - held.last : 0
  return (
    <Section
      title={words.packets}
      hint={state.complete ? undefined : words.packetsHint}
      actions={
        state.complete && !held ? null : (
          <Button size="small" aria-pressed={held !== null} onClick={() => setHeld(held ? null : state)}>
            {held ? words.goOn(formatNumber(waiting)) : words.hold}
          </Button>
        )
      }
    >
      <Filters packets={packets} shown={shown.length} search={search} change={change} />
      <Failure error={state.error} />
      {state.last > state.packets.length ? (
        <p className="dim sm">{words.newestOnly(formatNumber(MOST), formatNumber(state.last))}</p>
      ) : null}
      {shown.length > 0 ? (
        <DataTable
          label={words.packets}
          className="packets"
          rows={shown}
          columns={columnsOf(words)}
          id={(packet) => String(packet.no)}
          dense
        />
      ) : (
        <p className="quiet">
          {packets.length > 0 ? words.noneMatch : state.complete ? words.noPackets : words.noneYet}
        </p>
      )}
    </Section>
  )
}

type SearchState = ReturnType<typeof useSearchParams>

interface FilterProps {
  packets: readonly Packet[]
  shown: number
  search: SearchState[0]
  change: SearchState[1]
}

function Filters({ packets, shown, search, change }: FilterProps) {
  const { common, captures: words } = useText()
  const protocols = useMemo(() => [...new Set(packets.map((each) => each.proto))].sort(), [packets])
  return (
    <div className="filters">
      <FilterBox
        label={common.filter}
        placeholder={words.filterHint}
        value={search.words}
        onChange={(value) => change({ words: value })}
      />
      <FilterSelect
        label={words.columns.decision}
        any={words.anyDecision}
        options={Object.entries(words.decisions)}
        value={search.decision}
        onChange={(value) => change({ decision: value })}
      />
      <FilterSelect
        label={words.columns.proto}
        any={words.anyProtocol}
        options={protocols.map((each) => [each, each] as const)}
        value={search.proto}
        onChange={(value) => change({ proto: value })}
      />
      <span className="dim sm">{words.shown(formatNumber(shown), formatNumber(packets.length))}</span>
    </div>
  )
}

function columnsOf(words: Text['captures']): Column<Packet>[] {
  const { columns } = words
  return [
    { head: columns.no, numeric: true, className: 'mono dim', cell: ({ no }) => no },
    {
      head: columns.time,
      className: 'mono dim nowrap',
      cell: ({ time }) => `${formatTime(time, 'seconds')}${/\.\d{3}/.exec(time)?.[0] ?? ''}`,
    },
    {
      head: columns.device,
      cell: ({ device, interface: name, direction }) => (
        <TwoLines second={words.directions[direction](name)}>{device ?? '-'}</TwoLines>
      ),
    },
    {
      head: columns.ends,
      className: 'mono sm',
      cell: ({ src, src_port, dst, dst_port }) => (
        <TwoLines second={endOf(dst, dst_port)}>{endOf(src, src_port)}</TwoLines>
      ),
    },
    {
      head: columns.proto,
      cell: ({ proto, info }) => <TwoLines second={<span lang="en">{info}</span>}>{proto}</TwoLines>,
    },
    { head: columns.decision, cell: (packet) => <DecisionOf packet={packet} /> },
    { head: columns.leg, cell: ({ leg }) => leg ?? '-' },
    { head: columns.length, numeric: true, wide: true, cell: ({ length }) => formatNumber(length) },
  ]
}

function DecisionOf({ packet: { decision } }: { packet: Packet }) {
  const words = useText().captures
  if (!decision) return <span className="dim">{words.decisions.none}</span>
  const { policy, egress, reason } = decision
  const by = [policy, egress === null ? null : egressOf(egress).name].filter(Boolean).join(' → ')
  return (
    <TwoLines second={by === '' ? <code>{reason}</code> : by}>
      <span title={reason}>
        <StateWord state={decisionState(decision.decision)}>{words.decisions[decision.decision]}</StateWord>
      </span>
    </TwoLines>
  )
}
