// A question before something that cannot be undone: what follows from it, what refers to the thing, and its name to type.

import { useState, type ReactNode } from 'react'
import type { Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { useText } from '@/text'
import { Button } from './button'
import { Dialog } from './dialog'
import { Check, TextField } from './fields'
import { ReferringObjects, type Referring } from './referring'
import { Failure } from './section'

interface Props {
  open: boolean
  onClose: () => void
  title: string
  /** What follows, in a sentence. */
  consequence: ReactNode
  /** The name that must be typed. */
  name: string
  /** Kind and id, to name what refers to the thing. */
  subject?: { type: string; id: string }
  /** What happens to one of the objects that refer to it, if it is not what the gateway says. */
  fate?: (object: Referring) => ReactNode
  /** The thing can be deleted although others use it, if that is wanted expressly. */
  mayForce?: boolean
  action: string
  /** Room for a list of what follows. */
  wide?: boolean
  busy?: boolean
  error?: Error | null
  onConfirm: (force: boolean) => void
  children?: ReactNode
}

export function Confirm(props: Props) {
  return (
    <Dialog open={props.open} onClose={props.onClose} title={props.title} wide={props.wide}>
      <Question {...props} />
    </Dialog>
  )
}

function Question({
  consequence,
  name,
  subject,
  fate,
  mayForce = false,
  action,
  busy,
  error,
  onConfirm,
  onClose,
  children,
}: Props) {
  const text = useText()
  const [typed, setTyped] = useState('')
  const [force, setForce] = useState(false)
  const references = useGet(
    '/references/{type}/{id}',
    { path: subject ?? { type: '', id: '' } },
    { enabled: subject !== undefined, every: false },
  ).data?.data
  const objects = references?.objects ?? []
  return (
    <form
      className="form"
      onSubmit={(event) => {
        event.preventDefault()
        if (typed === name) onConfirm(force)
      }}
    >
      <p>{consequence}</p>
      {references && references.total > objects.length ? <Usage references={references} /> : null}
      {objects.length > 0 ? <ReferringObjects objects={objects} fate={fate} /> : null}
      {children}
      {mayForce && references && references.total > 0 ? (
        <Check label={text.common.although(references.total)} checked={force} onChange={setForce} />
      ) : null}
      <TextField
        label={text.common.typeToConfirm(name)}
        value={typed}
        onChange={setTyped}
        autoComplete="off"
        spellCheck={false}
      />
      <Failure error={error ?? null} />
      <div className="btns">
        <Button kind="primary" submit disabled={typed !== name} busy={busy}>
          {action}
        </Button>
        <Button kind="ghost" onClick={onClose}>
          {text.common.cancel}
        </Button>
      </div>
    </form>
  )
}

/** How many objects refer to the thing, by their kinds. */
function Usage({ references }: { references: Schemas['References'] }) {
  const text = useText()
  return (
    <p className="med">
      {text.common.usedBy(references.total)}{' '}
      <span className="dim">
        {Object.entries(references.referenced_by)
          .filter(([, count]) => count > 0)
          .map(([kind, count]) => `${count} ${text.kinds[kind]?.[count === 1 ? 0 : 1] ?? kind}`)
          .join(', ')}
      </span>
    </p>
  )
}
