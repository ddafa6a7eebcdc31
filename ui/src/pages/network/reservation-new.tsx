// A new reservation, empty or from a lease.

import { call, client } from '@/api/client'
import { useTitle } from '@/session/crumb'
import { useGo } from '@/session/link'
import { useSearchParams } from '@/session/search-params'
import { Answer, Tabs } from '@/components/answer'
import { useEdit } from '@/components/edit'
import { EditForm } from '@/components/form'
import { Section } from '@/components/section'
import { useText } from '@/text'
import { network } from './entry'
import { ReservationFields, reservationInput, type ReservationForm } from './reservation-form'

export default function NewReservation() {
  const text = useText()
  const go = useGo()
  const words = text.network.dhcp
  const [search] = useSearchParams()
  useTitle(words.newReservation)
  const version = {
    value: {
      mac: search.mac ?? '',
      ip: search.ip ?? '',
      hostname: search.hostname ?? '',
      device_id: search.device ?? '',
      comment: '',
    },
    etag: null,
  }
  const edit = useEdit<ReservationForm>({
    key: `reservation.new.${search.mac ?? ''}`,
    version,
    save: (value) => call(client.POST('/dhcp/reservations', { body: reservationInput(value) })),
    onSaved: () => go('/network/dhcp'),
  })
  return (
    <>
      <Answer question={words.reservationQuestion}>{words.reservationNew}</Answer>
      <Tabs entry={network} />
      <Section title={words.newReservation}>
        <EditForm edit={edit} action={text.common.create} isNew onCancel={() => go('/network/dhcp')}>
          <ReservationFields edit={edit} isNew />
        </EditForm>
      </Section>
    </>
  )
}
