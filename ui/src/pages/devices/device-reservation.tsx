// The address that the DHCP server reserves for a device.

import { useState } from 'react'
import { ApiError, call, client, type Schemas } from '@/api/client'
import { useChange, useGet } from '@/api/query'
import { say, sayError } from '@/session/toasts'
import { Button } from '@/components/button'
import { ErrorSummary, Select, TextField } from '@/components/fields'
import { Failure, Loaded, Section } from '@/components/section'
import { Clock } from '@/components/time'
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
  const remove = useChange((mac: string) =>
    call(client.DELETE('/dhcp/reservations/{mac}', { params: { path: { mac } } })),
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
                    busy={remove.isPending}
                    onClick={() =>
                      remove.mutate(each.mac ?? '', {
                        onSuccess: ({ warnings }) => say(words.removed, warnings),
                        onError: sayError,
                      })
                    }
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
  const add = useChange(() =>
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
  )
  const problem = add.error instanceof ApiError && add.error.fields.length > 0 ? add.error : null
  return (
    <form
      className="form form--2"
      onSubmit={(event) => {
        event.preventDefault()
        add.mutate(undefined, { onSuccess: ({ warnings }) => say(text.common.saved, warnings) })
      }}
    >
      {add.error ? (
        <div className="wide">
          {problem ? <ErrorSummary error={problem} /> : <Failure error={add.error} />}
        </div>
      ) : null}
      <Select
        label={text.devices.mac}
        value={mac}
        options={macs.map((each) => [each, each] as const)}
        error={problem?.of('mac')}
        onChange={setMac}
      />
      <TextField
        label={text.devices.address}
        value={ip}
        error={problem?.of('ip')}
        onChange={setIp}
        required
      />
      <TextField
        label={text.devices.hostname}
        value={hostname}
        error={problem?.of('hostname')}
        onChange={setHostname}
      />
      <div className="btns wide">
        <Button kind="primary" submit needs="operator" busy={add.isPending}>
          {words.reserve}
        </Button>
      </div>
    </form>
  )
}
