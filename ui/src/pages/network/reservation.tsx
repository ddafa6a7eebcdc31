// One reservation.

import { useState } from 'react'
import { call, client, type Schemas } from '@/api/client'
import { get, useChange, useGet } from '@/api/query'
import { useTitle } from '@/app/crumb'
import { useGo } from '@/app/link'
import { say } from '@/app/toasts'
import { Answer, Tabs } from '@/components/answer'
import { Button } from '@/components/button'
import { Confirm } from '@/components/confirm'
import { EditForm, useEdit } from '@/components/form'
import { usePageId } from '@/components/page-id'
import { Loaded, Section } from '@/components/section'
import { useText } from '@/text'
import { network } from './entry'
import { ReservationFields, reservationForm, reservationInput } from './reservation-form'

export default function ReservationPage() {
  const text = useText()
  const go = useGo()
  const mac = usePageId()
  const words = text.network.dhcp
  const reservation = useGet('/dhcp/reservations/{mac}', { path: { mac } })
  const [deleting, setDeleting] = useState(false)
  const shown = reservation.data?.data
  useTitle(mac)
  const change = useChange(() =>
    call(client.DELETE('/dhcp/reservations/{mac}', { params: { path: { mac } } })),
  )
  return (
    <>
      <Answer
        question={words.reservationQuestion}
        actions={
          shown ? (
            <Button needs="operator" onClick={() => setDeleting(true)}>
              {text.common.delete}
            </Button>
          ) : null
        }
      >
        {reservation.error
          ? text.network.unknownAnswer
          : shown
            ? words.reservationAnswer(shown.hostname ?? mac, shown.ip ?? '-')
            : text.common.loading}
      </Answer>
      <Tabs entry={network} />
      <Section title={words.reservationsTitle}>
        <Loaded query={reservation} lines={4}>
          {(read) => <Form key={mac} mac={mac} reservation={read} etag={reservation.data?.etag ?? null} />}
        </Loaded>
      </Section>
      <Confirm
        open={deleting}
        onClose={() => setDeleting(false)}
        title={words.deleteTitle(mac)}
        consequence={words.deleteConsequence}
        name={mac}
        action={text.common.delete}
        busy={change.isPending}
        error={change.error}
        onConfirm={() =>
          change.mutate(undefined, {
            onSuccess: () => {
              say(text.common.deleted(mac))
              go('/network/dhcp')
            },
          })
        }
      />
    </>
  )
}

interface FormProps {
  mac: string
  reservation: Schemas['DhcpReservation']
  etag: string | null
}

function Form({ mac, reservation, etag }: FormProps) {
  const [initial] = useState(() => ({ value: reservationForm(reservation), etag }))
  const edit = useEdit({
    key: `reservation.${mac}`,
    initial,
    save: (value, tag) =>
      call(
        client.PUT('/dhcp/reservations/{mac}', {
          params: { path: { mac }, header: tag ? { 'If-Match': tag } : {} },
          body: reservationInput(value),
        }),
      ),
    read: async () => {
      const now = await get('/dhcp/reservations/{mac}', { path: { mac } })
      return { value: reservationForm(now.data), etag: now.etag }
    },
    onSaved: () => undefined,
  })
  return (
    <EditForm edit={edit}>
      <ReservationFields edit={edit} isNew={false} />
    </EditForm>
  )
}
