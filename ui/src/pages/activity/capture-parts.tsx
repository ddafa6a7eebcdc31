// What the list of captures and the page of one have in common.

import { call, client, type Schemas } from '@/api/client'
import { useAction } from '@/components/action'
import { Button, classOf } from '@/components/button'
import { Icon } from '@/components/icons'
import { StateWord, type State } from '@/components/state'
import { useText } from '@/text'
import { useCaller } from '@/session/caller'
import { mayDo } from '@/session/roles'

type Session = Schemas['CaptureSession']

const STATES: Record<Session['state'], State> = {
  running: 'ok',
  done: 'idle',
  stopped: 'idle',
  error: 'degraded',
}

export function CaptureStateWord({ capture }: { capture: Session }) {
  const words = useText().captures
  return (
    <StateWord state={STATES[capture.state]}>
      {capture.end === null ? words.states[capture.state] : words.ended[capture.end]}
    </StateWord>
  )
}

/** Stops a capture that runs, and downloads what there is of it. */
export function CaptureActions({ capture, small }: { capture: Session; small?: boolean }) {
  const words = useText().captures
  const { role } = useCaller()
  const size = small ? 'small' : undefined
  const stop = useAction(
    () => stopOrDelete(capture.id),
    () => words.stopped,
  )
  return (
    <span className="btns">
      {capture.state === 'running' ? (
        <Button size={size} needs="operator" does={stop}>
          {words.stop}
        </Button>
      ) : null}
      {mayDo(role, 'operator') ? (
        <a
          className={classOf('plain', size)}
          href={'/api/v1/diagnostics/capture/{id}/pcapng'.replace('{id}', capture.id)}
          download={`capture-${capture.id}.pcapng`}
        >
          <Icon name="download" />
          {words.download}
        </a>
      ) : null}
    </span>
  )
}

/** Stops a capture that runs; deletes one that has ended. */
export const stopOrDelete = (id: string) =>
  call(client.DELETE('/diagnostics/capture/{id}', { params: { path: { id } } }))
