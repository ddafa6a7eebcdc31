// Bluetooth: the adapter, its devices, the phone as an uplink, and the detection of intrusions.

import { call, client, type Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { useAction } from '@/components/action'
import { answerOf, Page } from '@/components/answer'
import { Button } from '@/components/button'
import { Facts } from '@/components/facts'
import { Actions } from '@/components/menu'
import { Empty, LoadedSection, Section } from '@/components/section'
import { StateWord, type State } from '@/components/state'
import { Table } from '@/components/table'
import { Age, Clock } from '@/components/time'
import { TwoLines } from '@/components/two-lines'
import { useText } from '@/text'
import { Devices } from './devices'
import { FailoverForm, SettingsForm } from './forms'
import { PairingSection } from './pairing'

type Status = Schemas['BluetoothStatus']

const SEVERITIES: Record<Schemas['IdsEvent']['severity'], State> = {
  info: 'idle',
  warning: 'degraded',
  critical: 'down',
}

export default function Bluetooth() {
  const text = useText()
  const words = text.bluetooth
  const status = useGet('/bluetooth/status', {}, { every: 2000 })
  const read = status.data?.data
  return (
    <Page
      question={words.question}
      answer={answerOf(status, text, ({ available, powered, pan }) =>
        !available ? words.missing : !powered ? words.off : pan.connected ? words.carried : words.idle,
      )}
      actions={read?.available ? <Switches status={read} /> : null}
    >
      <LoadedSection title={words.adapter} query={status}>
        {(state) => <Adapter status={state} />}
      </LoadedSection>
      {read?.pairing ? <PairingSection pairing={read.pairing} /> : null}
      <Devices />
      <Section title={words.failover} hint={words.failoverHint}>
        <FailoverForm />
      </Section>
      <Section title={words.settings}>
        <SettingsForm />
      </Section>
      <Detection />
    </Page>
  )
}

function Switches({ status }: { status: Status }) {
  const words = useText().bluetooth
  const enable = useAction(
    (discoverable: boolean) => call(client.POST('/bluetooth/enable', { body: { discoverable } })),
    (_, discoverable) => (discoverable ? words.discoverableDone : words.switchedOn),
  )
  const disable = useAction(
    () => call(client.POST('/bluetooth/disable')),
    () => words.switchedOff,
  )
  const scan = useAction(
    () => call(client.POST('/bluetooth/scan', { body: { duration_sec: 60 } })),
    () => words.scanning,
  )
  if (!status.powered) {
    return (
      <Button kind="primary" needs="operator" busy={enable.busy} onClick={() => enable.run(false)}>
        {words.enable}
      </Button>
    )
  }
  return (
    <>
      <Button needs="operator" busy={disable.busy} onClick={() => disable.run()}>
        {words.disable}
      </Button>
      <Button needs="operator" busy={enable.busy} onClick={() => enable.run(true)}>
        {words.discoverable}
      </Button>
      <Button kind="primary" needs="operator" busy={scan.busy} onClick={() => scan.run()}>
        {words.scan}
      </Button>
    </>
  )
}

function Adapter({ status }: { status: Status }) {
  const words = useText().bluetooth
  const { adapter, needs, pan, nap, pairing_until, scan_until } = status
  return (
    <Facts
      facts={[
        needs !== null && [
          words.facts.needs,
          <span key="needs" lang="en">
            {needs}
          </span>,
        ],
        adapter && [words.facts.name, adapter.name],
        adapter && [words.facts.address, adapter.address, 'mono'],
        pairing_until !== null && [words.facts.pairing, <Clock key="pairing" time={pairing_until} />],
        scan_until !== null && [words.facts.scan, <Clock key="scan" time={scan_until} />],
        pan.device !== null && [words.facts.pan, words.panOf(pan.device, pan.ip)],
        pan.error !== null && [
          words.facts.panError,
          <span key="error" lang="en">
            {pan.error}
          </span>,
        ],
        nap.bridge !== null && [words.facts.nap, words.napOf(nap.bridge, nap.clients)],
        adapter && [words.tab, <Networks key="networks" status={status} />],
      ]}
    />
  )
}

function Networks({ status }: { status: Status }) {
  const text = useText()
  const words = text.bluetooth
  const send = useAction(
    (action: 'connect' | 'disconnect' | 'start' | 'stop') => {
      switch (action) {
        case 'connect':
          return call(client.POST('/bluetooth/pan/connect'))
        case 'disconnect':
          return call(client.POST('/bluetooth/pan/disconnect'))
        case 'start':
          return call(client.POST('/bluetooth/nap/start'))
        case 'stop':
          return call(client.POST('/bluetooth/nap/stop'))
      }
    },
    () => words.done,
  )
  const { pan, nap } = status
  return (
    <Actions
      small
      label={text.common.actions}
      button={text.common.actions}
      actions={[
        {
          id: 'pan',
          label: pan.connected ? words.disconnect : words.connect,
          needs: 'operator',
          run: () => send.run(pan.connected ? 'disconnect' : 'connect'),
        },
        {
          id: 'nap',
          label: nap.active ? words.napStop : words.napStart,
          needs: 'operator',
          run: () => send.run(nap.active ? 'stop' : 'start'),
        },
      ]}
    />
  )
}

function Detection() {
  const words = useText().bluetooth
  const ids = useGet('/bluetooth/ids', {}, { every: 5000 })
  const known = ids.data?.data.known.length ?? 0
  const columns = words.eventColumns
  return (
    <LoadedSection
      title={words.ids}
      hint={ids.data?.data.learning ? words.learning : words.idsHint(known)}
      query={ids}
      isEmpty={({ events }) => events.length === 0}
      empty={<Empty>{words.noEvents}</Empty>}
    >
      {({ events }) => (
        <Table
          label={words.ids}
          rows={events}
          id={({ time, mac, kind }) => `${time} ${mac} ${kind}`}
          columns={[
            { head: columns.time, cell: ({ time }) => <Age time={time} /> },
            {
              head: columns.kind,
              cell: ({ kind, severity }) => (
                <StateWord state={SEVERITIES[severity]}>{words.kinds[kind]}</StateWord>
              ),
            },
            {
              head: columns.device,
              cell: ({ mac, name }) => <TwoLines second={mac}>{name ?? words.unnamed}</TwoLines>,
            },
          ]}
        />
      )}
    </LoadedSection>
  )
}
