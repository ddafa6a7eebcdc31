// Sign-in. When the session ends while a form is open, the dialog appears over it, and the request goes on afterwards.

import { useState, useSyncExternalStore, type FormEvent } from 'react'
import { useQueryClient } from '@tanstack/react-query'
import { call, client } from '@/api/client'
import { session } from '@/api/session'
import { Button } from '@/components/button'
import { Dialog } from '@/components/dialog'
import { TextField } from '@/components/fields'
import { Failure } from '@/components/section'
import { useText } from '@/text'
import { useCaller } from '@/session/caller'

interface Props {
  open: boolean
  firm: boolean
  onClose: () => void
}

export function SignInDialog({ open, firm, onClose }: Props) {
  const text = useText()
  return (
    <Dialog open={open} onClose={onClose} firm={firm} title={text.shell.signIn}>
      {firm ? <p className="mid">{text.shell.sessionEnded}</p> : null}
      <SignInForm onDone={onClose} />
    </Dialog>
  )
}

/** The dialog that appears when a request finds that the session has ended. */
export function SignInAgain() {
  const expired = useSyncExternalStore(session.subscribe, () => session.expired)
  return <SignInDialog open={expired} firm onClose={() => undefined} />
}

export function SignInForm({ onDone }: { onDone: () => void }) {
  const text = useText()
  const queries = useQueryClient()
  const { status } = useCaller()
  const [typed, setUsername] = useState<string | null>(null)
  const username = typed ?? status?.user ?? ''
  const [password, setPassword] = useState('')
  const [error, setError] = useState<Error | null>(null)
  const [busy, setBusy] = useState(false)
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    setBusy(true)
    setError(null)
    try {
      const { data } = await call(client.POST('/auth/login', { body: { username, password } }))
      session.signedIn(data.csrf_token)
      setPassword('')
      onDone()
      void queries.invalidateQueries()
    } catch (failure) {
      setError(failure as Error)
    } finally {
      setBusy(false)
    }
  }
  return (
    <form className="form" onSubmit={(event) => void submit(event)}>
      <Failure error={error} />
      <TextField
        label={text.shell.username}
        value={username}
        onChange={setUsername}
        autoComplete="username"
        required
      />
      <TextField
        label={text.shell.password}
        type="password"
        value={password}
        onChange={setPassword}
        autoComplete="current-password"
        required
      />
      <div className="btns">
        <Button kind="primary" submit busy={busy}>
          {text.shell.signIn}
        </Button>
      </div>
    </form>
  )
}
