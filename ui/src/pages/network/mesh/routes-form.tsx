// The prefixes that a peer offers to route: those that are approved.

import { useState } from 'react'
import { call, client, type Schemas } from '@/api/client'
import { ActionForm } from '@/components/action-form'
import { useFormAction } from '@/components/action'
import { PickMany } from '@/components/picker'
import { useText } from '@/text'

interface Props {
  peer: Schemas['MeshPeer']
  onClose: () => void
}

export function RoutesForm({ peer, onClose }: Props) {
  const words = useText().mesh.routes
  const [chosen, setChosen] = useState(() =>
    peer.routes.filter(({ approved }) => approved).map(({ cidr }) => cidr),
  )
  const approve = useFormAction(
    (routes: string[]) =>
      call(client.POST('/mesh/peers/{id}/routes', { params: { path: { id: peer.id } }, body: { routes } })),
    ({ name }) => {
      onClose()
      return words.done(name)
    },
  )
  return (
    <ActionForm
      of={approve}
      onSubmit={() => approve.run(chosen)}
      word={words.approve}
      needs="admin"
      onCancel={onClose}
    >
      <PickMany
        label={words.label(peer.name)}
        hint={words.hint}
        all={peer.routes.map(({ cidr }) => ({ id: cidr, name: cidr }))}
        chosen={chosen}
        error={approve.of('routes')}
        onChange={setChosen}
      />
    </ActionForm>
  )
}
