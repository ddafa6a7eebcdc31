// A reservation as a form, for new ones and for changes.

import type { Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import type { Edit } from '@/components/edit'
import { FormFields, textOf } from '@/components/form'
import { fillWith, MacField } from '@/components/hosts/mac-field'
import { useText } from '@/text'

// A type, not an interface: the form wants the index signature of an object.
export type ReservationForm = {
  mac: string
  ip: string
  hostname: string
  device_id: string
  comment: string
}

export function reservationForm(reservation: Schemas['DhcpReservation']): ReservationForm {
  return {
    mac: reservation.mac ?? '',
    ip: reservation.ip ?? '',
    hostname: reservation.hostname ?? '',
    device_id: reservation.device_id ?? '',
    comment: reservation.comment,
  }
}

export function reservationInput(form: ReservationForm): Schemas['DhcpReservationInput'] {
  return {
    mac: textOf(form.mac),
    ip: textOf(form.ip),
    hostname: textOf(form.hostname),
    device_id: textOf(form.device_id),
    comment: form.comment,
  }
}

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
