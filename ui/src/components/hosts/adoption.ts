// A host becomes a device.

import { call, client, type Schemas } from '@/api/client'
import { useChange } from '@/api/query'

/** Makes a device of a host. Fields that are not given are those of the host. */
export function useAdoption() {
  return useChange(({ id, ...fields }: { id: string } & Partial<Schemas['DeviceInput']>) =>
    call(
      client.POST('/hosts/{id}/adopt', {
        params: { path: { id } },
        body: fields as Schemas['HostAdoptionInput'],
      }),
    ),
  )
}
