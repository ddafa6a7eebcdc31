// A reservation as a form, for new ones and for changes.

import type { Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import type { Edit } from '@/components/edit'
import { textOf } from '@/components/form'
import { FormFields } from '@/components/form-fields'
import { fillWith, MacField } from '@/components/hosts/mac-field'
import { resource } from '@/components/resource'
import { useText } from '@/text'

export const allReservations = resource('/dhcp/reservations/{mac}', {
  key: 'reservation',
  name: (reservation) => String(reservation.mac),
  fields: (reservation: Schemas['DhcpReservation'] | null) => ({
    mac: reservation?.mac ?? '',
    ip: reservation?.ip ?? '',
    hostname: reservation?.hostname ?? '',
    device_id: reservation?.device_id ?? '',
    comment: reservation?.comment ?? '',
  }),
  body: (form): Schemas['DhcpReservationInput'] => ({
    mac: textOf(form.mac),
    ip: textOf(form.ip),
    hostname: textOf(form.hostname),
    device_id: textOf(form.device_id),
    comment: form.comment,
  }),
})

type ReservationForm = ReturnType<typeof allReservations.fields>

interface Props {
  edit: Edit<ReservationForm>
  isNew: boolean
}

export function ReservationFields({ edit, isNew }: Props) {
  const words = useText().network.dhcp
  const { data, isPending } = useGet('/devices', {}, { every: false })
  const devices = data?.data ?? []
  return (
    <FormFields
      draft={edit.draft}
      texts={words.reservationFields}
      error={edit.problems}
      fields={[
        {
          field: 'mac',
          render: (field) => (
            <MacField
              {...field}
              required
              disabled={!isNew}
              onChoose={(host) => {
                const filled = fillWith(host, edit.draft.value)
                edit.draft.set('ip', filled.ip)
                edit.draft.set('hostname', filled.hostname)
                if (host.device_id) edit.draft.set('device_id', host.device_id)
              }}
            />
          ),
        },
        { field: 'ip', required: true },
        { field: 'hostname' },
        {
          field: 'device_id',
          kind: 'select',
          loading: isPending,
          options: [['', words.noDevice], ...devices.map((each) => [each.id, each.name] as const)],
        },
        { field: 'comment', wide: true },
      ]}
    />
  )
}
