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

const EMPTY = { username: '', password: '', code: '', turnOn: true }

export function AdminStep(props: StepProps) {
  const text = useText()
  const t = text.wizard.admin
  const queries = useQueryClient()
  const { status } = useCaller()
  const [typed, setTyped] = useState(EMPTY)
  const { username, password, code, turnOn } = typed
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<Error | null>(null)
  const needed = status?.setup_required ?? false
  const enforced = status?.enabled ?? false
  const create = async () => {
    setBusy(true)
    setError(null)
    try {
      const name = await makeAccount({ username, password }, status?.setup_code_required ? code : null)
      await (enforced ? signIn({ username, password }) : turnOn ? turnSignInOn() : undefined)
      setTyped({ ...typed, password: '', code: '' })
      await queries.invalidateQueries()
      props.finish(name)
    } catch (failure) {
      setError(failure as Error)
    } finally {
      setBusy(false)
    }
  }
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
          <Failure error={error} />
          <AccountFields
            typed={typed}
            error={error instanceof ApiError ? error : undefined}
            withCode={status?.setup_code_required ?? false}
            withSwitch={!enforced}
            onChange={(change) => setTyped((before) => ({ ...before, ...change }))}
          />
        </div>
      ) : (
        <p>
          <StateWord state="ok">{t.exists_short}</StateWord>
        </p>
      )}
    </StepPage>
  )
}

interface FieldsProps {
  typed: typeof EMPTY
  error: ApiError | undefined
  withCode: boolean
  withSwitch: boolean
  onChange: (change: Partial<typeof EMPTY>) => void
}

function AccountFields({ typed, error, withCode, withSwitch, onChange }: FieldsProps) {
  const text = useText()
  const t = text.wizard.admin
  return (
    <>
      <TextField
        label={text.shell.username}
        value={typed.username}
        error={error?.of('username')}
        onChange={(username) => onChange({ username })}
        autoComplete="username"
        required
      />
      <PasswordField
        label={text.shell.password}
        hint={text.system.accounts.passwordHint}
        value={typed.password}
        error={error?.of('password')}
        onChange={(password) => onChange({ password })}
        fresh
        required
      />
      {withCode ? (
        <TextField
          label={t.code}
          hint={t.codeHint}
          value={typed.code}
          error={error?.of('setup_code')}
          onChange={(code) => onChange({ code })}
          autoComplete="off"
          spellCheck={false}
          required
        />
      ) : null}
      {withSwitch ? (
        <Check label={t.turnOn} checked={typed.turnOn} onChange={(turnOn) => onChange({ turnOn })} />
      ) : null}
    </>
  )
}

interface Account {
  username: string
  password: string
}

/** Makes the first account and returns its name. */
async function makeAccount(account: Account, setup_code: string | null): Promise<string> {
  const body = { ...account, ...(setup_code === null ? {} : { setup_code }) }
  return (await call(client.POST('/auth/setup', { body }))).data.username
}

async function signIn(account: Account) {
  const { data } = await call(client.POST('/auth/login', { body: account }))
  session.signedIn(data.csrf_token)
}

/** The account is there. If only this fails, the switch is in the settings. */
async function turnSignInOn() {
  await call(
    client.PUT('/settings/{key}', {
      params: { path: { key: 'auth.enabled' }, header: {} },
      body: { value: true },
    }),
  ).catch((failure: unknown) => sayError(failure as Error))
}
