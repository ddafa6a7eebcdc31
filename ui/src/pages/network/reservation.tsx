// One reservation.

import { answerOf } from '@/components/answer'
import { useTitle } from '@/session/crumb'
import { ObjectForm } from '@/components/object-form'
import { ObjectPage } from '@/components/object-page'
import { usePageId } from '@/components/page-id'
import { deletionOf, useObject } from '@/components/resource'
import { LoadedSection } from '@/components/section'
import { useText } from '@/text'
import { allReservations, ReservationFields } from './reservation-form'

export default function ReservationPage() {
  const text = useText()
  const mac = usePageId()
  const words = text.network.dhcp
  const reservation = useObject(allReservations, mac)
  const shown = reservation.data?.data
  useTitle(mac)
  return (
    <ObjectPage
      question={words.reservationQuestion}
      answer={answerOf(reservation, text, (read) =>
        words.reservationAnswer(read.hostname ?? mac, read.ip ?? '-'),
      )}
      deletion={deletionOf(allReservations, shown, {
        title: words.deleteTitle,
        consequence: words.deleteConsequence,
        back: '/network/dhcp',
      })}
    >
      <LoadedSection title={words.reservationsTitle} query={reservation} lines={4}>
        {(read) => (
          <ObjectForm
            key={mac}
            resource={allReservations}
            stored={{ data: read, etag: reservation.data?.etag ?? null }}
          >
            {(edit) => <ReservationFields edit={edit} isNew={false} />}
          </ObjectForm>
        )}
      </LoadedSection>
    </ObjectPage>
  )
}
