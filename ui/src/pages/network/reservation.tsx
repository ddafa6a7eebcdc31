// One reservation.

import { call, client, type Schemas } from '@/api/client'
import { get, useGet } from '@/api/query'
import { useTitle } from '@/session/crumb'
import { useEdit } from '@/components/edit'
import { EditForm } from '@/components/form'
import { ObjectPage } from '@/components/object-page'
import { usePageId } from '@/components/page-id'
import { Loaded, Section } from '@/components/section'
import { useText } from '@/text'
import { network } from './entry'
import { ReservationFields, reservationForm, reservationInput } from './reservation-form'

export default function ReservationPage() {
  const text = useText()
  const mac = usePageId()
  const words = text.network.dhcp
  const reservation = useGet('/dhcp/reservations/{mac}', { path: { mac } })
  const shown = reservation.data?.data
  useTitle(mac)
  return (
    <ObjectPage
      question={words.reservationQuestion}
      answer={
        reservation.error
          ? text.network.unknownAnswer
          : shown
            ? words.reservationAnswer(shown.hostname ?? mac, shown.ip ?? '-')
            : text.common.loading
      }
      entry={network}
      deletion={
        shown
          ? {
              name: mac,
              title: words.deleteTitle(mac),
              consequence: words.deleteConsequence,
              remove: () => call(client.DELETE('/dhcp/reservations/{mac}', { params: { path: { mac } } })),
              back: '/network/dhcp',
              draft: `reservation.${mac}`,
            }
          : null
      }
    >
      <Section title={words.reservationsTitle}>
        <Loaded query={reservation} lines={4}>
          {(read) => <Form key={mac} mac={mac} reservation={read} etag={reservation.data?.etag ?? null} />}
        </Loaded>
      </Section>
    </ObjectPage>
  )
}

interface FormProps {
  mac: string
  reservation: Schemas['DhcpReservation']
  etag: string | null
}

function Form({ mac, reservation, etag }: FormProps) {
  const edit = useEdit({
    key: `reservation.${mac}`,
    version: { value: reservationForm(reservation), etag },
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
  })
  return (
    <EditForm edit={edit}>
      <ReservationFields edit={edit} isNew={false} />
    </EditForm>
  )
}
