// The bridges: whether each is up, and which tunnels it carries.

import { useState } from 'react'
import { call, client, type Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { Link, useGo } from '@/session/link'
import { Page } from '@/components/answer'
import { LinkButton } from '@/components/link-button'
import { Dialog } from '@/components/dialog'
import { Actions } from '@/components/menu'
import { LoadedSection, Empty } from '@/components/section'
import { StateWord, type State } from '@/components/state'
import { Age, useAge } from '@/components/time'
import { Table } from '@/components/table'
import { TwoLines } from '@/components/two-lines'
import { useAction } from '@/components/action'
import { useText } from '@/text'
import { formatNumber } from '@/text/format'

type Bridge = Schemas['Bridge']
type BridgeHealth = Schemas['BridgeHealth']

const STATES: Record<string, State> = {
  up: 'ok',
  degraded: 'degraded',
  down: 'down',
  error: 'down',
  disabled: 'idle',
}

export function bridgeState(status: string | undefined): State {
  return STATES[status ?? ''] ?? 'unknown'
}

export default function Bridges() {
  const text = useText()
  const bridges = useGet('/bridges', {}, { every: 5000 })
  const health = useGet('/bridges/status', {}, { every: 5000 })
  const words = text.paths.bridges
  return (
    <Page
      question={words.question}
      actions={
        <LinkButton kind="primary" needs="operator" to="/paths/bridges/new">
          {words.new}
        </LinkButton>
      }
      answer={health.error ? text.common.unreachable : <Sentence health={health.data?.data} />}
    >
      <LoadedSection
        title={words.title}
        query={bridges}
        empty={<Empty command={words.emptyCommand}>{words.empty}</Empty>}
      >
        {(all) => <List bridges={all} health={health.data?.data} />}
      </LoadedSection>
    </Page>
  )
}

function Sentence({ health }: { health: BridgeHealth[] | undefined }) {
  const text = useText()
  const words = text.paths.bridges
  if (!health) return <>{text.common.loading}</>
  if (health.length === 0) return <>{words.none}</>
  const up = health.filter((each) => each.status === 'up').length
  const tunnels = new Set(health.flatMap((each) => each.tunnels.map((tunnel) => tunnel.tunnel_id)))
  const [counted, use] = words.carried(tunnels.size, health.length)
  return (
    <>
      {words.answer(up, health.length)} <Link to="/paths">{counted}</Link>
      {use}
    </>
  )
}

function List({ bridges, health }: { bridges: Bridge[]; health: BridgeHealth[] | undefined }) {
  const text = useText()
  const { columns, kinds } = text.paths.bridges
  const [outcome, setOutcome] = useState<{ name: string; result: Schemas['TestOutcome'] } | null>(null)
  const healthOf = (bridge: Bridge) => health?.find((each) => each.id === bridge.id)
  return (
    <>
      <Table
        rows={bridges}
        id={(bridge) => bridge.id}
        className="tbl--end"
        columns={[
          {
            head: columns.bridge,
            bare: true,
            cell: (bridge) => (
              <TwoLines second={kinds[bridge.kind]}>
                <Link className="med" to={`/paths/bridges/${bridge.id}`}>
                  {bridge.name}
                </Link>
              </TwoLines>
            ),
          },
          {
            head: columns.state,
            cell: (bridge) => <BridgeState status={healthOf(bridge)?.status ?? bridge.status} />,
          },
          { head: columns.way, cell: (bridge) => <Way bridge={bridge} /> },
          { head: columns.tunnels, cell: (bridge) => <CarriedTunnels health={healthOf(bridge)} /> },
          {
            head: columns.test,
            cell: (bridge) => <LastTest test={healthOf(bridge)?.last_test ?? bridge.last_test ?? null} />,
          },
          {
            cell: (bridge) => (
              <BridgeActions
                bridge={bridge}
                onOutcome={(result) => setOutcome({ name: bridge.name, result })}
              />
            ),
          },
        ]}
      />
      <Dialog
        open={outcome !== null}
        onClose={() => setOutcome(null)}
        title={text.paths.bridges.testTitle(outcome?.name ?? '')}
      >
        {outcome ? <Outcome outcome={outcome.result} /> : null}
      </Dialog>
    </>
  )
}

function BridgeState({ status }: { status: string | undefined }) {
  const { bridges, states } = useText().paths
  return (
    <StateWord state={bridgeState(status)}>
      {bridges.states[status ?? ''] ?? status ?? states.unknown}
    </StateWord>
  )
}

export function Way({ bridge }: { bridge: Bridge }) {
  const text = useText()
  const { sources, targets, transports } = text.paths.bridges
  if (bridge.transport) {
    const { type, address, port } = bridge.transport
    return (
      <TwoLines second={transports[type]}>
        {address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`}
      </TwoLines>
    )
  }
  const from = bridge.source
  const into = bridge.target
  return (
    <span>
      {from ? `${sources[from.type] ?? from.type} ${from.value}` : '-'} →{' '}
      {into ? `${targets[into.type] ?? into.type} ${into.target}` : '-'}
    </span>
  )
}

export function CarriedTunnels({ health }: { health: BridgeHealth | undefined }) {
  const text = useText()
  const words = text.paths.bridges
  if (!health) return <>-</>
  if (health.tunnels.length === 0) return <span className="dim">{text.common.none}</span>
  return (
    <span className="inline">
      {health.tunnels.map((each) => (
        <span key={each.tunnel_id} className="two">
          <Link to={`/paths/tunnels/${each.tunnel_id}`}>{each.tunnel}</Link>
          <small>{each.connected ? words.connected : (each.last_error ?? words.notConnected)}</small>
        </span>
      ))}
    </span>
  )
}

export function LastTest({ test }: { test: Schemas['BridgeTest'] | null }) {
  const text = useText()
  const words = text.paths.bridges
  const age = useAge(test?.at)
  if (!test) return <span className="dim">{words.untested}</span>
  if (!test.ok)
    return (
      <TwoLines second={test.error}>
        <StateWord state="down">{words.failed(text.common.ago(age))}</StateWord>
      </TwoLines>
    )
  if (test.latency_ms === null) return <Age time={test.at} />
  return <>{words.tested(text.common.ago(age), `${formatNumber(test.latency_ms, 1)} ms`)}</>
}

interface ActionsProps {
  bridge: Bridge
  onOutcome: (outcome: Schemas['TestOutcome']) => void
}

function BridgeActions({ bridge, onOutcome }: ActionsProps) {
  const text = useText()
  const go = useGo()
  const words = text.paths.bridges
  const path = { path: { id: bridge.id } }
  const test = useAction(
    () => call(client.POST('/bridges/{id}/test', { params: path })),
    (data) => onOutcome(data),
  )
  const toggle = useAction(
    () => call(client.POST('/bridges/{id}/toggle', { params: path })),
    (data) => (data.enabled ? words.isEnabled(bridge.name) : words.isDisabled(bridge.name)),
  )
  return (
    <Actions
      label={`${text.common.actions}: ${bridge.name}`}
      actions={[
        { id: 'test', label: words.test, needs: 'operator', disabled: test.busy, run: () => test.run() },
        {
          id: 'toggle',
          label: bridge.enabled ? words.disable : words.enable,
          needs: 'operator',
          disabled: toggle.busy,
          run: () => toggle.run(),
        },
        { id: 'edit', label: text.common.edit, run: () => go(`/paths/bridges/${bridge.id}`) },
      ]}
    />
  )
}

export function Outcome({ outcome }: { outcome: Schemas['TestOutcome'] }) {
  const text = useText()
  const words = text.paths.bridges
  const duration = (ms: number | null) => (ms === null ? '-' : `${formatNumber(ms, 1)} ms`)
  return (
    <>
      <p className="med">
        {outcome.ok
          ? outcome.latency_ms === null
            ? words.testPassed
            : words.testOk(duration(outcome.latency_ms))
          : words.testFailed}
      </p>
      <Table
        rows={outcome.steps}
        id={(step) => step.name}
        plain
        columns={[
          { head: words.step, cell: (step) => step.name },
          {
            head: words.result,
            cell: (step) => (
              <TwoLines second={step.error}>
                <StateWord state={step.ok ? 'ok' : 'down'}>
                  {step.ok ? words.stepOk : words.stepFailed}
                </StateWord>
              </TwoLines>
            ),
          },
          { head: words.duration, numeric: true, cell: (step) => duration(step.latency_ms) },
        ]}
      />
    </>
  )
}
