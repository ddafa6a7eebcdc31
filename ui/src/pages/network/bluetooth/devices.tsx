// Bluetooth devices: those that are paired, and those nearby, which can be paired.

import { useState } from 'react'
import { call, client, type Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { useAction, useFormAction } from '@/components/action'
import { Confirm } from '@/components/confirm'
import { Dialog } from '@/components/dialog'
import { Actions } from '@/components/menu'
import { Empty, LoadedSection } from '@/components/section'
import { Tag } from '@/components/state'
import { Table, type Column } from '@/components/table'
import { TwoLines } from '@/components/two-lines'
import { useText, type Text } from '@/text'
import { PairForm } from './pairing'

type Device = Schemas['RemoteDevice']

const nameOf = ({ name, mac }: Device) => name ?? mac

export function Devices() {
  const words = useText().bluetooth
  const devices = useGet('/bluetooth/devices', {}, { every: 5000 })
  const [removing, setRemoving] = useState<Device | null>(null)
  const trust = useAction(
    ({ mac, trusted }: Device) => call(client.POST('/bluetooth/pair', { body: { mac, trusted: !trusted } })),
    () => words.done,
  )
  const own: Column<Device>[] = [
    ...columnsOf(words),
    {
      numeric: true,
      cell: (device) => (
        <Actions
          label={words.actionsFor(nameOf(device))}
          actions={[
            {
              id: 'trust',
              label: device.trusted ? words.distrust : words.trust,
              needs: 'operator',
              run: () => trust.run(device),
            },
            { id: 'remove', label: words.remove, needs: 'operator', run: () => setRemoving(device) },
          ]}
        />
      ),
    },
  ]
  return (
    <>
      <LoadedSection title={words.devices} query={devices} empty={<Empty>{words.noDevices}</Empty>}>
        {(list) => <Table label={words.devices} rows={list} id={({ mac }) => mac} columns={own} />}
      </LoadedSection>
      <Nearby />
      <RemoveDialog device={removing} onClose={() => setRemoving(null)} />
    </>
  )
}

function Nearby() {
  const words = useText().bluetooth
  const nearby = useGet('/bluetooth/nearby', {}, { every: 5000 })
  const [pairing, setPairing] = useState<Device | null>(null)
  const columns: Column<Device>[] = [
    ...columnsOf(words),
    {
      numeric: true,
      cell: (device) => (
        <Actions
          label={words.actionsFor(nameOf(device))}
          actions={[{ id: 'pair', label: words.pair, needs: 'operator', run: () => setPairing(device) }]}
        />
      ),
    },
  ]
  return (
    <>
      <LoadedSection title={words.nearby} query={nearby} empty={<Empty>{words.noNearby}</Empty>}>
        {(list) => <Table label={words.nearby} rows={list} id={({ mac }) => mac} columns={columns} />}
      </LoadedSection>
      <Dialog
        open={pairing !== null}
        onClose={() => setPairing(null)}
        title={words.pairTitle(pairing ? nameOf(pairing) : '')}
      >
        {pairing ? <PairForm mac={pairing.mac} onClose={() => setPairing(null)} /> : null}
      </Dialog>
    </>
  )
}

function columnsOf(words: Text['bluetooth']): Column<Device>[] {
  const { columns } = words
  return [
    {
      head: columns.device,
      bare: true,
      cell: ({ name, mac }) => (
        <TwoLines second={mac}>
          <span className="med">{name ?? words.unnamed}</span>
        </TwoLines>
      ),
    },
    {
      head: columns.state,
      cell: ({ paired, trusted, connected }) => (
        <>
          {connected ? <Tag>{words.connected}</Tag> : null} {paired ? <Tag>{words.paired}</Tag> : null}{' '}
          {trusted ? <Tag>{words.trusted}</Tag> : null}
        </>
      ),
    },
    { head: columns.signal, numeric: true, cell: ({ rssi }) => (rssi === null ? '-' : `${rssi} dBm`) },
    { head: columns.services, cell: ({ services }) => services.join(', ') || '-' },
  ]
}

function RemoveDialog({ device, onClose }: { device: Device | null; onClose: () => void }) {
  const text = useText()
  const words = text.bluetooth
  const remove = useFormAction(
    ({ mac }: Device) => call(client.DELETE('/bluetooth/devices/{mac}', { params: { path: { mac } } })),
    (_, device) => {
      onClose()
      return text.common.deleted(nameOf(device))
    },
  )
  const name = device ? nameOf(device) : ''
  return (
    <Confirm
      open={device !== null}
      onClose={onClose}
      title={words.removeTitle(name)}
      consequence={words.removeConsequence}
      name={name}
      action={words.remove}
      busy={remove.busy}
      error={remove.error}
      onConfirm={() => {
        if (device) remove.run(device)
      }}
    />
  )
}
