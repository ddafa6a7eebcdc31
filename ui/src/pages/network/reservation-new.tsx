// A new reservation, empty or from a lease.

import { useSearchParams } from '@/session/search-params'
import { NewObject } from '@/components/object-form'
import { useText } from '@/text'
import { allReservations, ReservationFields } from './reservation-form'

export default function NewReservation() {
  const words = useText().network.dhcp
  const [search] = useSearchParams()
  return (
    <NewObject
      resource={allReservations}
      question={words.reservationQuestion}
      answer={words.reservationNew}
      title={words.newReservation}
      back="/network/dhcp"
      draft={`reservation.new.${search.mac ?? ''}`}
      start={{
        mac: search.mac ?? '',
        ip: search.ip ?? '',
        hostname: search.hostname ?? '',
        device_id: search.device ?? '',
        comment: '',
      }}
    >
      {(edit) => <ReservationFields edit={edit} isNew />}
    </NewObject>
  )
}
