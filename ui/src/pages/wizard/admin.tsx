// Step 1: the first account.

import { useState } from 'react'
import { useQueryClient } from '@tanstack/react-query'
import { ApiError, call, client } from '@/api/client'
import { session } from '@/api/session'
import { useCaller } from '@/session/caller'
import { sayError } from '@/session/toasts'
import { Check, TextField } from '@/components/fields'
import { PasswordField } from '@/components/password-field'
import { Failure } from '@/components/section'
import { Glyph, StateWord } from '@/components/state'
import { useText } from '@/text'
import { StepPage, type StepProps } from './step'

export function AdminStep(props: StepProps) {
  const text = useText()
  const t = text.wizard.admin
  const queries = useQueryClient()
  const { status } = useCaller()
  const [username, setUsername] = useState('')
  const [password, setPassword] = useState('')
  const [code, setCode] = useState('')
  const [turnOn, setTurnOn] = useState(true)
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<Error | null>(null)
  const needed = status?.setup_required ?? false
  const enforced = status?.enabled ?? false
  const create = async () => {
    setBusy(true)
    setError(null)
    try {
      const { data } = await call(
        client.POST('/auth/setup', {
          body: { username, password, ...(status?.setup_code_required ? { setup_code: code } : {}) },
        }),
      )
      if (enforced) {
        const signedIn = await call(client.POST('/auth/login', { body: { username, password } }))
        session.signedIn(signedIn.data.csrf_token)
      } else if (turnOn)
        // The account is there. If only this fails, the switch is in the settings.
        await call(
          client.PUT('/settings/{key}', {
            params: { path: { key: 'auth.enabled' }, header: {} },
            body: { value: true },
          }),
        ).catch((failure: unknown) => sayError(failure as Error))
      setPassword('')
      setCode('')
      await queries.invalidateQueries()
      props.finish(data.username)
    } catch (failure) {
      setError(failure as Error)
    } finally {
      setBusy(false)
    }
  }
  const api = error instanceof ApiError ? error : undefined
  return (
    <StepPage
      {...props}
      step="admin"
      title={t.title}
      lead={needed ? t.lead : t.exists}
      action={needed ? t.create : text.wizard.next}
      onAction={() => (needed ? void create() : props.finish(status?.user ?? t.exists_short))}
      busy={busy}
      disabled={!status}
    >
      {enforced ? null : (
        <div className="banner banner--direct">
          <Glyph state="direct" />
          <span>{t.notEnforced}</span>
        </div>
      )}
      {needed ? (
        <div className="form">
          {error ? <Failure error={error} /> : null}
          <TextField
            label={text.shell.username}
            value={username}
            error={api?.of('username')}
            onChange={setUsername}
            autoComplete="username"
            required
          />
          <PasswordField
            label={text.shell.password}
            hint={text.system.accounts.passwordHint}
            value={password}
            error={api?.of('password')}
            onChange={setPassword}
            fresh
            required
          />
          {status?.setup_code_required ? (
            <TextField
              label={t.code}
              hint={t.codeHint}
              value={code}
              error={api?.of('setup_code')}
              onChange={setCode}
              autoComplete="off"
              spellCheck={false}
              required
            />
          ) : null}
          {enforced ? null : <Check label={t.turnOn} checked={turnOn} onChange={setTurnOn} />}
        </div>
      ) : (
        <p>
          <StateWord state="ok">{t.exists_short}</StateWord>
        </p>
      )}
    </StepPage>
  )
}
