// A question before something that cannot be undone: what follows from it, what refers to the thing, and its name to type.

import { useState, type ReactNode } from 'react'
import { useGet } from '@/api/query'
import { useText } from '@/text'
import { Button } from './button'
import { Dialog } from './dialog'
import { TextField } from './fields'
import { Failure } from './section'

interface Props {
  open: boolean
  onClose: () => void
  title: string
  /** What follows, in a sentence. */
  consequence: ReactNode
  /** The name that must be typed. */
  name: string
  /** Kind and id, to count what refers to the thing. */
  subject?: { type: string; id: string }
  action: string
  /** Room for a list of what follows. */
  wide?: boolean
  busy?: boolean
  error?: Error | null
  onConfirm: () => void
  children?: ReactNode
}

export function Confirm(props: Props) {
  return (
    <Dialog open={props.open} onClose={props.onClose} title={props.title} wide={props.wide}>
      <Question {...props} />
    </Dialog>
  )
}

function Question({ consequence, name, subject, action, busy, error, onConfirm, onClose, children }: Props) {
  const text = useText()
  const [typed, setTyped] = useState('')
  const references = useGet(
    '/references/{type}/{id}',
    { path: subject ?? { type: '', id: '' } },
    { enabled: subject !== undefined, every: false },
  ).data?.data
  return (
    <form
      className="form"
      onSubmit={(event) => {
        event.preventDefault()
        if (typed === name) onConfirm()
      }}
    >
      <p>{consequence}</p>
      {references && references.total > 0 ? (
        <p className="med">
          {text.common.usedBy(references.total)}{' '}
          <span className="dim">
            {Object.entries(references.referenced_by)
              .map(([kind, count]) => `${kind} ${count}`)
              .join(', ')}
          </span>
        </p>
      ) : null}
      {children}
      <TextField
        label={text.common.typeToConfirm(name)}
        value={typed}
        onChange={setTyped}
        autoComplete="off"
        spellCheck={false}
      />
      {error ? <Failure error={error} /> : null}
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
