// What the manager of uplinks decided and measured.

import { useState } from 'react'
import type { Schemas } from '@/api/client'
import { CaptureMenu } from '@/components/capture-menu'
import { Facts } from '@/components/facts'
import { Icon } from '@/components/icons'
import { StateWord, Tag, type State } from '@/components/state'
import { Age, Clock, useAge } from '@/components/time'
import { Table } from '@/components/table'
import { TwoLines } from '@/components/two-lines'
import { useText } from '@/text'
import { formatAge, formatNumber, formatTime } from '@/text/format'
import { numberChanges } from './timeline'

type Manager = Schemas['WanManager']
type Health = Schemas['UplinkHealth']

const STATES: Record<string, State> = {
  online: 'ok',
  degraded: 'degraded',
  connecting: 'down',
  disconnecting: 'degraded',
  offline: 'down',
  captive: 'degraded',
  disabled: 'idle',
}

/** Decisions that are listed at first. */
const FEW = 12

export function Decisions({ manager }: { manager: Manager }) {
  const text = useText()
  const words = text.network.uplinks
  const { columns } = words
  const [all, setAll] = useState(false)
  if (manager.decisions.length === 0) return <p className="quiet">{words.decisionsEmpty}</p>
  const numbers = new Map(numberChanges(manager.decisions).map(({ number, decision }) => [decision, number]))
  // A pin belongs to the last change away from its uplink.
  const newestFrom = (uplink: string) =>
    manager.decisions.find((decision) => decision.applied && decision.from === uplink)
  return (
    <>
      <Table
        rows={manager.decisions.slice(0, all ? undefined : FEW)}
        id={(decision) => `${decision.time} ${decision.uplink}`}
        htmlId="decisions"
        columns={[
          {
            head: columns.number,
            bare: true,
            cell: (decision) => <Numbered number={numbers.get(decision)} />,
          },
          {
            head: columns.time,
            bare: true,
            className: 'nowrap mono dim',
            cell: (decision) => <Clock time={decision.time} seconds />,
          },
          {
            head: columns.change,
            bare: true,
            className: 'nowrap',
            cell: (decision) => <Change decision={decision} />,
          },
          {
            head: columns.reason,
            cell: (decision) => {
              const pin = manager.flap_pins.find(
                (each) => each.uplink === decision.from && newestFrom(each.uplink) === decision,
              )
              return <Reason decision={decision} pinnedUntil={pin?.pinned_until} />
            },
          },
          { head: columns.kernel, className: 'nowrap', cell: (decision) => <Kernel decision={decision} /> },
        ]}
      />
      {manager.decisions.length > FEW ? (
        <div>
          <button type="button" className="link" aria-expanded={all} onClick={() => setAll(!all)}>
            {all ? words.fewer : words.allOf(manager.decisions.length)}
          </button>
        </div>
      ) : null}
    </>
  )
}

function Reason({
  decision,
  pinnedUntil,
}: {
  decision: Schemas['UplinkDecision']
  pinnedUntil: string | undefined
}) {
  const words = useText().network.uplinks
  return (
    <>
      <span lang="en">{decision.reason}</span>{' '}
      {pinnedUntil !== undefined && decision.applied ? (
        <Tag>
          <Icon name="pin" />
          {words.pin(formatTime(pinnedUntil))}
        </Tag>
      ) : null}
    </>
  )
}

/** The number of a change in the chart; a clock if it did not take effect. */
function Numbered({ number }: { number: number | undefined }) {
  return number === undefined ? (
    <span className="swn swn--o">
      <Icon name="clock" />
    </span>
  ) : (
    <span className="swn">{number}</span>
  )
}

function Change({ decision }: { decision: Schemas['UplinkDecision'] }) {
  const words = useText().network.uplinks
  if (!decision.applied)
    return <span className="dim">{decision.from ? words.stay(decision.from) : words.noSwitch}</span>
  return (
    <span className="change">
      <span className="med">{decision.from ?? '-'}</span>
      <Icon name="arrow" />
      <span className="med">{decision.to ?? '-'}</span>
    </span>
  )
}

function Kernel({ decision }: { decision: Schemas['UplinkDecision'] }) {
  const words = useText().network.uplinks
  if (!decision.applied) return <StateWord state="idle">{words.notSwitched}</StateWord>
  if (!decision.kernel_agrees_at) return <StateWord state="unknown">{words.notYet}</StateWord>
  const delay = Date.parse(decision.kernel_agrees_at) - Date.parse(decision.time)
  return <StateWord state="ok">{words.agreesIn(`${formatNumber(Math.max(0, delay))} ms`)}</StateWord>
}

/** Kinds of packets that tell most about an uplink. */
const PRESETS = [undefined, 'encrypted-dns', 'dns', 'wireguard', 'icmp'] as const

export function HealthTable({ health }: { health: Health[] }) {
  const text = useText()
  const words = text.network.uplinks
  const columns = words.healthColumns
  return (
    <Table
      rows={health}
      id={(each) => each.interface}
      columns={[
        {
          head: columns.uplink,
          bare: true,
          cell: (each) => (
            <TwoLines second={each.interface}>
              <span className="med">{each.uplink || each.interface}</span>
            </TwoLines>
          ),
        },
        { head: columns.state, cell: (each) => <HealthState health={each} /> },
        { head: columns.latency, numeric: true, cell: (each) => milliseconds(each.latency_ms) },
        { head: columns.jitter, numeric: true, cell: (each) => milliseconds(each.jitter_ms) },
        {
          head: columns.loss,
          numeric: true,
          cell: (each) => (each.loss_pct === null ? '-' : `${formatNumber(each.loss_pct, 1)} %`),
        },
        {
          head: columns.targets,
          title: (each) => each.targets.map((target) => target.address).join(', '),
          cell: ({ targets }) =>
            targets.length === 0
              ? '-'
              : words.targets(targets.filter((target) => target.ok).length, targets.length),
        },
        { head: columns.address, cell: (each) => each.public_ip ?? '-' },
        { head: columns.checked, cell: (each) => (each.checked_at ? <Age time={each.checked_at} /> : '-') },
        {
          head: <span className="sr">{text.common.actions}</span>,
          cell: (each) => (
            <CaptureMenu
              label={text.captures.capture}
              offers={PRESETS.map((preset) => ({ interface: each.interface, preset }))}
              small
            />
          ),
        },
      ]}
    />
  )
}

function HealthState({ health }: { health: Health }) {
  const words = useText().network.uplinks
  const age = useAge(health.since)
  if (health.checked_at === null && health.state !== 'disabled')
    return <StateWord state="idle">{words.notProbed}</StateWord>
  return (
    <TwoLines second={health.since ? words.stateSince(age) : null}>
      <StateWord state={STATES[health.state] ?? 'unknown'}>{words.states[health.state]}</StateWord>
    </TwoLines>
  )
}

function milliseconds(value: number | null): string {
  return value === null ? '-' : `${formatNumber(value, 1)} ms`
}

export function ManagerFacts({ manager }: { manager: Manager }) {
  const text = useText()
  const words = text.network.uplinks
  const columns = words.legColumns
  const { timing } = manager
  return (
    <div className="cols cols--2">
      <div className="sec">
        <Facts
          facts={[
            [words.mode, words.modes[manager.mode] ?? manager.mode],
            [words.balance, manager.balanced ? words.balanceOn : words.balanceOff],
            [words.nextEval, timing.next_eval ? <Clock key="next" time={timing.next_eval} seconds /> : null],
            [words.holdDown, formatAge(timing.hold_down_sec, text)],
            [words.failback, formatAge(timing.failback_delay_sec, text)],
            [
              words.pins,
              manager.flap_pins
                .map((pin) => words.pinned(pin.uplink, formatTime(pin.pinned_until), pin.count))
                .join(', ') || text.common.none,
            ],
          ]}
        />
      </div>
      <div className="sec">
        <Table
          label={words.legs}
          rows={manager.egress_legs}
          id={(leg) => leg.uplink}
          columns={[
            { head: columns.uplink, bare: true, className: 'med', cell: (leg) => leg.uplink },
            { head: columns.table, numeric: true, cell: (leg) => leg.table },
            { head: columns.mark, cell: (leg) => <code>{leg.mark}</code> },
            { head: columns.weight, numeric: true, cell: (leg) => leg.weight },
            { head: columns.flows, numeric: true, cell: (leg) => formatNumber(leg.flows) },
            {
              head: columns.installed,
              cell: (leg) => (
                <StateWord state={leg.installed ? 'ok' : 'down'}>
                  {leg.installed ? words.installed : words.notInstalled}
                </StateWord>
              ),
            },
          ]}
        />
      </div>
    </div>
  )
}
