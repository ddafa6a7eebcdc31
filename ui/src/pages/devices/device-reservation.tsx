// The address that the DHCP server reserves for a device.

import { useState } from 'react'
import { call, client, type Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { Button } from '@/components/button'
import { Select, TextField } from '@/components/fields'
import { Loaded, Section } from '@/components/section'
import { Clock } from '@/components/time'
import { useAction, useFormAction } from '@/components/action'
import { ActionForm } from '@/components/action-form'
import { useText } from '@/text'

type Device = Schemas['Device']

export function DeviceReservation({ device }: { device: Device }) {
  const text = useText()
  const words = text.devices.reservation
  const macs = [device.mac, ...device.macs].filter((mac) => mac !== null)
  const query = useGet('/dhcp/reservations')
  const leases = useGet('/dhcp/leases').data?.data.filter(
    (lease) => lease.device_id === device.id || macs.includes(lease.mac),
  )
  const remove = useAction(
    (mac: string) => call(client.DELETE('/dhcp/reservations/{mac}', { params: { path: { mac } } })),
    () => words.removed,
  )
  return (
    <Section title={text.devices.tabs.reservation} hint={words.hint}>
      <Loaded query={query}>
        {(all) => {
          const own = all.filter(
            (each) => each.device_id === device.id || (each.mac !== null && macs.includes(each.mac)),
          )
          return (
            <>
              {own.map((each) => (
                <div key={each.id} className="banner banner--plain">
                  <span>
                    <b className="med mono">{each.ip ?? '-'}</b> {words.forMac(each.mac ?? '-')}
                    {each.hostname ? `, ${each.hostname}` : ''}
                    {each.comment ? <span className="dim"> {each.comment}</span> : null}
                  </span>
                  <Button
                    size="small"
                    needs="operator"
                    busy={remove.busy}
                    onClick={() => remove.run(each.mac ?? '')}
                  >
                    {words.remove}
                  </Button>
                </div>
              ))}
              {own.length === 0 && macs.length === 0 ? <p className="dim">{words.noMac}</p> : null}
              {own.length === 0 && macs.length > 0 ? (
                <ReservationForm device={device} macs={macs} ip={leases?.[0]?.ip ?? ''} />
              ) : null}
            </>
          )
        }}
      </Loaded>
      {leases && leases.length > 0 ? (
        <p className="mid">
          {leases.map((lease) => (
            <span key={lease.ip}>
              {words.lease} <b className="med mono">{lease.ip}</b>, {words.until}{' '}
              <Clock time={lease.expires_at} />.{' '}
            </span>
          ))}
        </p>
      ) : null}
    </Section>
  )
}

function ReservationForm({ device, macs, ip: first }: { device: Device; macs: string[]; ip: string }) {
  const text = useText()
  const words = text.devices.reservation
  const [mac, setMac] = useState(macs[0] ?? '')
  const [typed, setIp] = useState<string | null>(null)
  const [hostname, setHostname] = useState(device.hostname ?? '')
  const ip = typed ?? (first || device.ips?.find((each) => each.includes('.'))) ?? ''
  const add = useFormAction(
    () =>
      call(
        client.POST('/dhcp/reservations', {
          body: {
            mac,
            ip,
            hostname: hostname.trim() || null,
            device_id: device.id,
          } as Schemas['DhcpReservationInput'],
        }),
      ),
    () => text.common.saved,
  )
  return (
    <ActionForm
      className="form form--2"
      of={add}
      onSubmit={() => add.run()}
      word={words.reserve}
      needs="operator"
    >
      <Select
        label={text.devices.mac}
        value={mac}
        options={macs.map((each) => [each, each] as const)}
        error={add.of('mac')}
        onChange={setMac}
      />
      <TextField label={text.devices.address} value={ip} error={add.of('ip')} onChange={setIp} required />
      <TextField
        label={text.devices.hostname}
        value={hostname}
        error={add.of('hostname')}
        onChange={setHostname}
      />
    </ActionForm>
  )
}
