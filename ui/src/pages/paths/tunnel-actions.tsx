// Bringing a tunnel up and taking it down.

import { call, client, type Schemas } from '@/api/client'
import { useGo } from '@/session/link'
import { Button } from '@/components/button'
import { Actions } from '@/components/menu'
import { useAction } from '@/components/action'
import { useText } from '@/text'

type Tunnel = Schemas['Tunnel']

function useSwitch(tunnel: Tunnel) {
  const text = useText()
  const path = { path: { id: tunnel.id } }
  return useAction(
    (up: boolean) =>
      up
        ? call(client.POST('/tunnels/{id}/up', { params: path }))
        : call(client.POST('/tunnels/{id}/down', { params: path })),
    (_, up) => (up ? text.paths.actions.isUp(tunnel.name) : text.paths.actions.isDown(tunnel.name)),
  )
}

/** The menu of a tunnel in a list. */
export function TunnelActions({ tunnel }: { tunnel: Tunnel }) {
  const text = useText()
  const go = useGo()
  const { run, busy } = useSwitch(tunnel)
  const isDown = tunnel.admin_state === 'down'
  return (
    <Actions
      label={`${text.common.actions}: ${tunnel.name}`}
      actions={[
        { id: 'open', label: text.paths.actions.open, run: () => go(`/paths/tunnels/${tunnel.id}`) },
        {
          id: 'switch',
          label: isDown ? text.paths.actions.up : text.paths.actions.down,
          needs: 'operator',
          disabled: busy || !tunnel.enabled,
          run: () => run(isDown),
        },
        {
          id: 'edit',
          label: text.common.edit,
          needs: 'operator',
          run: () => go(`/paths/tunnels/${tunnel.id}`, { edit: 'yes' }),
        },
      ]}
    />
  )
}

/** The button of a tunnel on its page. */
export function TunnelSwitch({ tunnel }: { tunnel: Tunnel }) {
  const text = useText()
  const { run, busy } = useSwitch(tunnel)
  const isDown = tunnel.admin_state === 'down'
  return (
    <Button needs="operator" busy={busy} disabled={!tunnel.enabled} onClick={() => run(isDown)}>
      {isDown ? text.paths.actions.up : text.paths.actions.down}
    </Button>
  )
}
