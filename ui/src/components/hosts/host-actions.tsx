// What one can do with a host: make a device of it, at once or with a name, put it in quarantine, block it, forget it.

import { useState } from 'react'
import { call, client, type Answer, type Schemas } from '@/api/client'
import { say, sayError } from '@/session/toasts'
import { Button } from '@/components/button'
import { Actions, type Action } from '@/components/menu'
import { useAction } from '@/components/action'
import { useText } from '@/text'
import { useAdoption } from './adoption'
import { HostDialog, type Deed } from './host-dialog'
import { setHidden, useHidden } from './hidden'
import { nameOf, type Host } from './hosts'

interface Props {
  host: Host
  /** The button makes a device at once, with the name that the host gives itself. Else it asks for a name. */
  once?: boolean
  /** Called when the host is not on the list any more. */
  onForgotten?: () => void
}

export function HostActions({ host, once = false, onForgotten }: Props) {
  const text = useText()
  const words = text.hosts
  const hidden = useHidden()
  const [deed, setDeed] = useState<Deed | null>(null)
  const adopt = useAdoption()
  const name = nameOf(host)
  const forget = useAction(
    () => call(client.DELETE('/hosts/{id}', { params: { path: { id: host.id } } })),
    () => {
      onForgotten?.()
      return words.forgotten(name)
    },
  )
  const said = {
    onSuccess: ({ data, warnings }: Answer<Schemas['Device']>) => say(words.adopted(data.name), warnings),
    onError: sayError,
  }
  const isHidden = hidden.has(host.id)
  const isStranger = host.device_id === null
  const actions: (Action | null)[] = [
    isStranger && once
      ? { id: 'adopt', label: words.adoptNamed, needs: 'operator', run: () => setDeed('adopt') }
      : null,
    isStranger
      ? { id: 'quarantine', label: words.quarantine, needs: 'operator', run: () => setDeed('quarantine') }
      : null,
    isStranger ? { id: 'block', label: words.block, needs: 'operator', run: () => setDeed('block') } : null,
    isStranger
      ? { id: 'hide', label: isHidden ? words.unhide : words.hide, run: () => setHidden(host.id, !isHidden) }
      : null,
    { id: 'forget', label: words.forget, needs: 'operator', run: () => forget.run() },
  ]
  return (
    <div className="btns btns--row">
      {isStranger ? (
        <Button
          size="small"
          icon="plus"
          needs="operator"
          busy={adopt.isPending}
          aria-label={`${words.adopt}: ${name}`}
          onClick={() => (once ? adopt.mutate({ id: host.id }, said) : setDeed('adopt'))}
        >
          {words.adopt}
        </Button>
      ) : null}
      <Actions label={words.actionsFor(name)} actions={actions.filter((each) => each !== null)} />
      <HostDialog host={host} deed={deed} onClose={() => setDeed(null)} />
    </div>
  )
}
