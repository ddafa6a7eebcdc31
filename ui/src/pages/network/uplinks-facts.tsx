// What the manager of uplinks decided and measured.

import { useState } from 'react'
import type { Schemas } from '@/api/client'
import { Facts } from '@/components/facts'
import { Icon } from '@/components/icons'
import { StateWord, Tag, type State } from '@/components/state'
import { Age, Clock, useAge } from '@/components/time'
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
      <table className="tbl tbl--card" id="decisions">
        <thead>
          <tr>
            <th scope="col">{columns.number}</th>
            <th scope="col">{columns.time}</th>
            <th scope="col">{columns.change}</th>
            <th scope="col">{columns.reason}</th>
            <th scope="col">{columns.kernel}</th>
          </tr>
        </thead>
        <tbody>
          {manager.decisions.slice(0, all ? undefined : FEW).map((decision) => {
            const number = numbers.get(decision)
            const pin = manager.flap_pins.find(
              (each) => each.uplink === decision.from && newestFrom(each.uplink) === decision,
            )
            return (
              <tr key={`${decision.time} ${decision.uplink}`}>
                <td>
                  {number === undefined ? (
                    <span className="swn swn--o">
                      <Icon name="clock" />
                    </span>
                  ) : (
                    <span className="swn">{number}</span>
                  )}
                </td>
                <td className="nowrap mono dim">
                  <Clock time={decision.time} seconds />
                </td>
                <td className="nowrap">
                  <Change decision={decision} />
                </td>
                <td data-l={columns.reason}>
                  <span lang="en">{decision.reason}</span>{' '}
                  {pin && decision.applied ? (
                    <Tag>
                      <Icon name="pin" />
                      {words.pin(formatTime(pin.pinned_until))}
                    </Tag>
                  ) : null}
                </td>
                <td className="nowrap" data-l={columns.kernel}>
                  <Kernel decision={decision} />
                </td>
              </tr>
            )
          })}
        </tbody>
      </table>
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

export function HealthTable({ health }: { health: Health[] }) {
  const text = useText()
  const columns = text.network.uplinks.healthColumns
  return (
    <table className="tbl tbl--card">
      <thead>
        <tr>
          <th scope="col">{columns.uplink}</th>
          <th scope="col">{columns.state}</th>
          <th scope="col" className="num">
            {columns.latency}
          </th>
          <th scope="col" className="num">
            {columns.jitter}
          </th>
          <th scope="col" className="num">
            {columns.loss}
          </th>
          <th scope="col">{columns.targets}</th>
          <th scope="col">{columns.address}</th>
          <th scope="col">{columns.checked}</th>
        </tr>
      </thead>
      <tbody>
        {health.map((each) => (
          <HealthRow key={each.interface} health={each} />
        ))}
      </tbody>
    </table>
  )
}

function HealthRow({ health }: { health: Health }) {
  const text = useText()
  const words = text.network.uplinks
  const columns = words.healthColumns
  const age = useAge(health.since)
  const probed = health.checked_at !== null
  const milliseconds = (value: number | null) => (value === null ? '-' : `${formatNumber(value, 1)} ms`)
  return (
    <tr>
      <td>
        <span className="two">
          <span className="med">{health.uplink || health.interface}</span>
          <small>{health.interface}</small>
        </span>
      </td>
      <td data-l={columns.state}>
        {probed || health.state === 'disabled' ? (
          <span className="two">
            <StateWord state={STATES[health.state] ?? 'unknown'}>
              {words.states[health.state] ?? health.state}
            </StateWord>
            {health.since ? <small>{words.stateSince(age)}</small> : null}
          </span>
        ) : (
          <StateWord state="idle">{words.notProbed}</StateWord>
        )}
      </td>
      <td className="num" data-l={columns.latency}>
        {milliseconds(health.latency_ms)}
      </td>
      <td className="num" data-l={columns.jitter}>
        {milliseconds(health.jitter_ms)}
      </td>
      <td className="num" data-l={columns.loss}>
        {health.loss_pct === null ? '-' : `${formatNumber(health.loss_pct, 1)} %`}
      </td>
      <td data-l={columns.targets} title={health.targets.map((target) => target.address).join(', ')}>
        {health.targets.length === 0
          ? '-'
          : words.targets(health.targets.filter((target) => target.ok).length, health.targets.length)}
      </td>
      <td data-l={columns.address}>{health.public_ip ?? '-'}</td>
      <td data-l={columns.checked}>{health.checked_at ? <Age time={health.checked_at} /> : '-'}</td>
    </tr>
  )
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
        <table className="tbl tbl--card" aria-label={words.legs}>
          <thead>
            <tr>
              <th scope="col">{columns.uplink}</th>
              <th scope="col" className="num">
                {columns.table}
              </th>
              <th scope="col">{columns.mark}</th>
              <th scope="col" className="num">
                {columns.weight}
              </th>
              <th scope="col" className="num">
                {columns.flows}
              </th>
              <th scope="col">{columns.installed}</th>
            </tr>
          </thead>
          <tbody>
            {manager.egress_legs.map((leg) => (
              <tr key={leg.uplink}>
                <td className="med">{leg.uplink}</td>
                <td className="num" data-l={columns.table}>
                  {leg.table}
                </td>
                <td data-l={columns.mark}>
                  <code>{leg.mark}</code>
                </td>
                <td className="num" data-l={columns.weight}>
                  {leg.weight}
                </td>
                <td className="num" data-l={columns.flows}>
                  {formatNumber(leg.flows)}
                </td>
                <td data-l={columns.installed}>
                  <StateWord state={leg.installed ? 'ok' : 'down'}>
                    {leg.installed ? words.installed : words.notInstalled}
                  </StateWord>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </div>
  )
}
