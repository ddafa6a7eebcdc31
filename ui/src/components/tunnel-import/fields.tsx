// What a file does not say: the name of the tunnel, and the credentials that its server asks for.

import { useEffect, useRef } from 'react'
import type { ApiError } from '@/api/client'
import { TextField } from '@/components/fields'
import { useText } from '@/text'
import type { TunnelImport } from './use-import'

interface Props {
  of: TunnelImport
  /** Error of the import itself. */
  error: ApiError | null
}

export function ImportFields({ of, error }: Props) {
  const text = useText()
  const words = text.paths.import
  const { name, setName, login, setLogin, kind, problem, read } = of
  // Another tunnel of this name is a conflict and names no field.
  const taken = problem?.details.field === 'name' ? problem.message : undefined
  const asked = read?.warnings.some((each) => each.path === 'username') ?? false
  const hint = asked ? undefined : words.ifAny
  const first = useRef<HTMLDivElement>(null)
  // The place of the file is gone, so the next field has the focus.
  useEffect(() => first.current?.querySelector('input')?.focus(), [])
  return (
    <div className="form" ref={first}>
      <TextField
        label={words.name}
        hint={words.nameHint}
        error={error?.of('name') ?? problem?.of('name') ?? taken}
        value={name}
        onChange={setName}
        required
        pattern="[a-z0-9_\-]{1,32}"
        autoComplete="off"
        spellCheck={false}
      />
      {kind === 'openvpn' ? (
        <>
          <TextField
            label={words.username}
            hint={hint}
            error={error?.of('username')}
            value={login.username}
            onChange={(username) => setLogin({ ...login, username })}
            autoComplete="off"
          />
          <TextField
            label={words.password}
            hint={hint}
            type="password"
            error={error?.of('password')}
            value={login.password}
            onChange={(password) => setLogin({ ...login, password })}
            autoComplete="new-password"
          />
          <TextField
            label={words.passphrase}
            hint={words.ifAny}
            type="password"
            error={error?.of('key_passphrase')}
            value={login.key_passphrase}
            onChange={(key_passphrase) => setLogin({ ...login, key_passphrase })}
            autoComplete="new-password"
          />
        </>
      ) : null}
    </div>
  )
}
