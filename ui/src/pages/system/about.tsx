// Version, host, health of the parts, and where to read more.

import { useState, type ReactNode } from 'react'
import type { Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { openWizard } from '@/session/first-run'
import { Facts, type Fact } from '@/components/facts'
import { Page } from '@/components/answer'
import { Button } from '@/components/button'
import { Icon, type IconName } from '@/components/icons'
import { CheckReason, English } from '@/components/said'
import { LoadedSection, Loaded, Section } from '@/components/section'
import { Segmented } from '@/components/segmented'
import { StateWord, type State } from '@/components/state'
import { Age } from '@/components/time'
import { Table } from '@/components/table'
import { TwoLines } from '@/components/two-lines'
import { useText, type Text } from '@/text'
import { formatAge, formatBytes, formatNumber } from '@/text/format'
import { subsystemName } from '@/pages/overview/subsystems-panel'
import { SupportBundle } from './support-bundle'

const STATE: Record<string, State> = { ok: 'ok', degraded: 'degraded', failed: 'down', error: 'down' }

export default function About() {
  const text = useText()
  const t = text.system.about
  const status = useGet('/status', {}, { every: 3000 })
  const health = useGet('/health')
  const platform = useGet('/platform')
  const observer = useGet('/observer')
  const state = health.error ? undefined : health.data?.data
  return (
    <Page
      question={t.question}
      answer={
        status.data && platform.data ? (
          <>
            {t.sentence(
              status.data.data.version,
              platform.data.data.hostname,
              formatAge(status.data.data.uptime_sec, text),
            )}{' '}
            {state ? t.health[state.status] : null} {state?.reason ? <English>{state.reason}</English> : null}
          </>
        ) : (
          text.common.loading
        )
      }
    >
      <Links />
      <Loaded query={observer} lines={6}>
        {(list) => <Parts parts={list} />}
      </Loaded>
      <LoadedSection title={t.host} query={platform} lines={6}>
        {(host) => <Host host={host} status={status.data?.data} />}
      </LoadedSection>
      <LoadedSection title={t.nics} query={platform} lines={3}>
        {(host) => <Nics nics={host.nics} />}
      </LoadedSection>
      <SupportBundle />
    </Page>
  )
}

/** What else the gateway serves. */
function Links() {
  const t = useText().system.about
  return (
    <Section title={t.links}>
      <ul className="linkrows">
        <Row icon="globe">
          <a href="/api/docs" target="_blank" rel="noreferrer">
            {t.docs}
          </a>
        </Row>
        <Row icon="table">
          <a href="/api/v1/openapi.json" target="_blank" rel="noreferrer">
            {t.openapi}
          </a>
        </Row>
        <Row icon="activity">
          <a href="/metrics" target="_blank" rel="noreferrer">
            {t.metrics}
          </a>
        </Row>
        <Row
          icon="check"
          action={
            <Button size="small" onClick={openWizard}>
              {t.wizard}
            </Button>
          }
        >
          {t.wizardHint}
        </Row>
      </ul>
    </Section>
  )
}

function Row({ icon, action, children }: { icon: IconName; action?: ReactNode; children: ReactNode }) {
  return (
    <li>
      <Icon name={icon} />
      <span>{children}</span>
      <span>{action}</span>
    </li>
  )
}

function Parts({ parts }: { parts: Schemas['Observation'][] }) {
  const text = useText()
  const t = text.system.about
  const problems = parts.filter((part) => part.state !== 'ok')
  const [shown, setShown] = useState<'all' | 'problems'>('problems')
  const list = shown === 'all' ? parts : problems
  return (
    <Section
      title={t.services}
      hint={t.working(parts.length - problems.length, parts.length)}
      actions={
        <Segmented
          label={t.services}
          value={shown}
          options={[
            ['problems', t.showProblems],
            ['all', t.showAll],
          ]}
          onChange={setShown}
        />
      }
    >
      {list.length > 0 ? (
        <Table
          label={t.services}
          rows={list}
          id={(part) => part.subsystem}
          dense
          columns={[
            {
              head: t.part,
              bare: true,
              cell: (part) => <PartName part={part} />,
            },
            {
              head: t.state,
              cell: (part) => (
                <StateWord state={STATE[part.state] ?? 'unknown'}>
                  {t.states[part.state] ?? part.state}
                </StateWord>
              ),
            },
            { head: t.since, cell: (part) => (part.since ? <Age time={part.since} /> : '-') },
            {
              head: t.checks,
              numeric: true,
              cell: (part) => (part.checks > 0 ? formatNumber(part.checks) : '-'),
            },
          ]}
        />
      ) : null}
    </Section>
  )
}

interface HostProps {
  host: Schemas['Platform']
  status: Schemas['ServiceStatus'] | undefined
}

function Host({ host, status }: HostProps) {
  const text = useText()
  const t = text.system.about
  const facts: Fact[] = [
    [t.os, host.os],
    [t.kernel, `${host.kernel}, ${host.arch}`],
    [t.cpu, `${host.cpu.model}, ${t.cores(host.cpu.cores)}`],
    [t.load, host.cpu.load.map((load) => formatNumber(load, 2)).join(', ') || '-'],
    [t.memory, t.of(formatBytes(host.memory.used), formatBytes(host.memory.total))],
    ...host.disks.map((disk): Fact => [
      t.disk(disk.mount),
      t.of(formatBytes(disk.used), formatBytes(disk.size)),
    ]),
    [t.temperature, host.cpu_temp === null ? text.common.noData : `${formatNumber(host.cpu_temp, 1)} °C`],
    ...host.sensors.map((sensor): Fact => [
      `${t.temperature}: ${sensor.name}`,
      `${formatNumber(sensor.celsius, 1)} °C`,
    ]),
    ...host.power.map((supply): Fact => [t.power(supply.name), powerOf(supply, t)]),
    [t.bpf, [...new Set([host.ebpf.mode, ...host.ebpf.features])].join(', ')],
    [t.dataplane, status?.dataplane],
    [t.mode, status?.mode],
    [t.revision, status ? formatNumber(status.revision) : '-'],
    [t.node, status?.node_id, 'mono'],
  ]
  return <Facts facts={facts} />
}

/** A supply with all that it reports. The words of the kernel stay as they are. */
function powerOf(supply: Schemas['PowerSupply'], t: Text['system']['about']): string {
  const charge = supply.percent === null ? null : `${supply.percent} %`
  const online = supply.online === null ? null : supply.online ? t.supplies : t.suppliesNot
  return [supply.kind, online, charge, supply.state].filter((each) => each !== null).join(', ')
}

const XDP_SUPPORT = (t: Text['system']['about']): Record<Schemas['XdpSupport'], string> => ({
  native: t.xdpNative,
  none: t.xdpNone,
  unknown: '-',
})

function Nics({ nics }: { nics: Schemas['Nic'][] }) {
  const text = useText()
  const t = text.system.about
  return (
    <Table
      label={t.nics}
      rows={nics}
      id={(nic) => nic.name}
      dense
      columns={[
        { head: t.nic, bare: true, className: 'med mono', cell: (nic) => nic.name },
        {
          head: t.link,
          cell: (nic) => (
            <StateWord state={nic.state === 'up' ? 'ok' : nic.state === 'down' ? 'idle' : 'unknown'}>
              {nic.state === 'up' ? t.up : nic.state === 'down' ? t.down : (nic.state ?? '-')}
            </StateWord>
          ),
        },
        { head: t.driver, cell: (nic) => nic.driver ?? '-' },
        { head: t.xdp, cell: (nic) => XDP_SUPPORT(t)[nic.xdp_support] },
        { head: t.speed, cell: (nic) => (nic.speed === null ? '-' : `${formatNumber(nic.speed)} Mbit/s`) },
        { head: t.mtu, numeric: true, cell: (nic) => nic.mtu ?? '-' },
      ]}
    />
  )
}

function PartName({ part }: { part: Schemas['Observation'] }) {
  const text = useText()
  return (
    <TwoLines
      second={part.message && !(part.state === 'ok' && text.server) ? <CheckReason {...part} /> : null}
    >
      <span className="med" title={part.subsystem}>
        {subsystemName(part.subsystem, text)}
      </span>
    </TwoLines>
  )
}
