// Step 7: the tunnel is pulled, and nothing may get out.

import { useEffect, useRef, useState } from 'react'
import { useQueryClient } from '@tanstack/react-query'
import { call, client, type Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { Button } from '@/components/button'
import { Select } from '@/components/fields'
import { PickOne } from '@/components/picker'
import { Failure, Section } from '@/components/section'
import { StateWord, type State } from '@/components/state'
import { Table } from '@/components/table'
import { useText } from '@/text'
import { formatNumber } from '@/text/format'
import { benchOf, restoreOnLeave } from './bench'
import { failureOf } from './first-policy'
import { outcomeOf, prove, Stopped, type LeakCheck, type Outcome, type Proof } from './proof'
import { TunnelState } from './path'
import { StepPage, type StepProps } from './step'
import { Strip } from './strip'

interface Run {
  proof: Proof
  device: string
  tunnel: string
  policy: string | null
  failClosed: boolean
}

interface Ended {
  message: string
  error: Error | null
}

export function ProveStep(props: StepProps) {
  const text = useText()
  const t = text.wizard.prove
  const tunnels = useGet('/tunnels', {}, { every: 2000 }).data?.data ?? []
  const devices = useGet('/devices').data?.data ?? []
  const [tunnelId, setTunnel] = useState(props.progress.tunnel)
  const [deviceId, setDevice] = useState(props.progress.device)
  const tunnel = tunnels.find((each) => each.id === tunnelId) ?? tunnels[0]
  const device = devices.find((each) => each.id === deviceId) ?? devices[0]
  const { run, ended, busy, pull, stop } = useProof()
  const done = run !== undefined && run.proof.phase === 'done'
  const outcome = done ? outcomeOf(run.proof, run.failClosed) : undefined
  const ready = tunnel !== undefined && device !== undefined
  const up = tunnel?.status === 'up'
  const start = () => (ready ? void pull(tunnel, device) : undefined)
  return (
    <StepPage
      {...props}
      step="prove"
      title={t.title}
      lead={run ? (done ? t.leadDone : t.leadRunning)(run.tunnel, run.device) : t.lead}
      action={done ? text.wizard.next : t.pull}
      onAction={() =>
        outcome
          ? props.finish(outcome.escaped === null ? text.common.noData : t.summary(outcome.escaped), {
              tunnel: tunnel?.id,
              device: device?.id,
            })
          : start()
      }
      busy={busy}
      // While the tunnel is down for the proof the button keeps the focus.
      disabled={!busy && !done && (!ready || !up)}
      extra={
        busy ? (
          <Button onClick={stop}>{t.stop}</Button>
        ) : done ? (
          <Button icon="refresh" needs="operator" disabled={!up} onClick={start}>
            {t.again}
          </Button>
        ) : null
      }
    >
      {ended ? (
        <div role="alert" className="ended">
          <p className="strong">{ended.message}</p>
          <Failure error={ended.error} />
        </div>
      ) : null}
      {run || busy ? null : ready ? (
        <Chosen {...{ tunnels, devices, tunnel, device }} onTunnel={setTunnel} onDevice={setDevice} />
      ) : (
        <p>{t.none}</p>
      )}
      {run ? <Course run={run} outcome={outcome} /> : null}
    </StepPage>
  )
}

interface ChosenProps {
  tunnels: Schemas['Tunnel'][]
  devices: Schemas['Device'][]
  tunnel: Schemas['Tunnel']
  device: Schemas['Device']
  onTunnel: (id: string) => void
  onDevice: (id: string) => void
}

/** The tunnel that is pulled, and the device whose traffic is watched. */
function Chosen({ tunnels, devices, tunnel, device, onTunnel, onDevice }: ChosenProps) {
  const t = useText().wizard.prove
  return (
    <div className="form">
      <Select
        label={t.tunnel}
        value={tunnel.id}
        hint={tunnel.status === 'up' ? undefined : t.notUp}
        options={tunnels.map((each) => [each.id, each.name] as const)}
        onChange={onTunnel}
      />
      <p>
        <TunnelState tunnel={tunnel} />
      </p>
      <PickOne
        label={t.device}
        value={device.id}
        options={devices.map((each) => [each.id, each.name] as const)}
        onChange={onDevice}
      />
    </div>
  )
}

/** The proof that runs or has run. */
function useProof() {
  const t = useText().wizard.prove
  const queries = useQueryClient()
  const [run, setRun] = useState<Run>()
  const [ended, setEnded] = useState<Ended>()
  const [busy, setBusy] = useState(false)
  const stopped = useRef(false)
  useEffect(() => {
    stopped.current = false
    window.addEventListener('pagehide', restoreOnLeave)
    return () => {
      // The proof goes on to its end, which brings the tunnel up.
      stopped.current = true
      window.removeEventListener('pagehide', restoreOnLeave)
    }
  }, [])
  const pull = async (tunnel: Schemas['Tunnel'], device: Schemas['Device']) => {
    stopped.current = false
    setBusy(true)
    setEnded(undefined)
    setRun(undefined)
    let last: Proof | undefined
    try {
      const policy = await policyFor(device.id)
      const about = {
        device: device.name,
        tunnel: tunnel.name,
        policy: policy?.name ?? null,
        failClosed: failureOf(policy) !== 'fail-open',
      }
      const bench = benchOf({ tunnel: tunnel.id, device: device.id, policy: policy?.id ?? null })
      const show = (proof: Proof) => {
        last = proof
        setRun({ ...about, proof })
      }
      const proof = await prove(bench, show, () => stopped.current)
      if (proof.backAt === null) setEnded({ message: t.notBack, error: null })
    } catch (error) {
      const restored = last?.restored ?? true
      setEnded({
        message: restored ? (error instanceof Stopped ? t.stopped : t.failed) : t.failedDown,
        error: error instanceof Stopped ? null : (error as Error),
      })
      if (last) setRun(undefined)
    } finally {
      setBusy(false)
      void queries.invalidateQueries()
    }
  }
  const stop = () => {
    stopped.current = true
  }
  return { run, ended, busy, pull, stop }
}

/** What the proof has shown so far. */
function Course({ run, outcome }: { run: Run; outcome: Outcome | undefined }) {
  const t = useText().wizard.prove
  const { proof, device, tunnel, policy } = run
  return (
    <>
      {proof.phase === 'done' ? null : (
        <p role="status" className="phase">
          {t.phases[proof.phase]}
        </p>
      )}
      {outcome ? <Verdict run={run} outcome={outcome} /> : null}
      <Strip proof={proof} device={device} tunnel={tunnel} policy={policy} />
      {proof.check ? <Checks check={proof.check} /> : null}
    </>
  )
}

/** The policy that decides about the device. */
async function policyFor(device_id: string): Promise<Schemas['RoutingPolicy'] | undefined> {
  const body = { device_id } as Schemas['RequestInput']
  const evaluation = await call(client.POST('/policy/evaluate', { body }))
  const id = evaluation.data.matched_policies[0]?.id
  if (!id) return undefined
  return (await call(client.GET('/routing/policies/{id}', { params: { path: { id } } }))).data
}

function Verdict({ run, outcome }: { run: Run; outcome: Outcome }) {
  const text = useText()
  const t = text.wizard.prove
  const sentence = {
    pass:
      outcome.through.length > 0
        ? t.rerouted(run.device, outcome.through.join(', '))
        : t.result(run.device, outcome.seconds, outcome.stopped),
    leak: t.leaked(run.device),
    direct: t.open(run.device),
    unknown: t.unsure,
  }[outcome.verdict]
  return (
    <div className={`proof proof--${outcome.verdict}`} role="status">
      <b>{outcome.escaped === null ? '?' : formatNumber(outcome.escaped)}</b>
      <p>
        <strong>{t.packetsEscaped(outcome.escaped ?? 0)}</strong>
        {sentence}
      </p>
    </div>
  )
}

const STATE: Record<string, State> = { pass: 'ok', fail: 'leak', inconclusive: 'unknown' }

function Checks({ check }: { check: LeakCheck }) {
  const text = useText()
  const t = text.wizard.prove
  const words: Record<string, string> = { pass: t.pass, fail: t.fail, inconclusive: t.inconclusive }
  const pass = check.results.filter((result) => result.pass).length
  return (
    <Section
      title={t.checks}
      actions={
        <StateWord state={STATE[check.verdict] ?? 'unknown'}>
          {t.passed(pass, check.results.length)}
        </StateWord>
      }
    >
      <Table
        label={t.checks}
        rows={check.results}
        id={(result) => result.check}
        columns={[
          {
            head: t.check,
            bare: true,
            className: 'med',
            cell: (result) => (
              <>
                {t.names[result.check]} <span className="dim mono sm">{result.check}</span>
              </>
            ),
          },
          { head: t.expected, className: 'mid', cell: (result) => result.expected },
          { head: t.observed, className: 'mid', cell: (result) => result.observed },
          {
            head: t.resultColumn,
            numeric: true,
            cell: (result) => (
              <StateWord state={STATE[result.outcome] ?? 'unknown'}>
                {words[result.outcome] ?? result.outcome}
              </StateWord>
            ),
          },
        ]}
      />
      {check.remaining_risks.length > 0 ? (
        <p className="dim sm">
          {t.risks} {check.remaining_risks.join(' ')}
        </p>
      ) : null}
    </Section>
  )
}
