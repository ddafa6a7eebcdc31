// Step 4: a tunnel from the file of a VPN provider.

import { useState } from 'react'
import { ApiError, call, client, type Schemas } from '@/api/client'
import { useChange, useGet } from '@/api/query'
import { say } from '@/app/toasts'
import { Button } from '@/components/button'
import { ErrorSummary, Field, TextArea, TextField } from '@/components/fields'
import { Failure, Loaded, Section } from '@/components/section'
import { StateWord, Tag, type State } from '@/components/state'
import { useText } from '@/text'
import { StepPage, type StepProps } from './step'
import { readVpnFile, tunnelName, type VpnFile } from './vpn-file'

type Tunnel = Schemas['Tunnel']

const STATE: Record<string, State> = {
  up: 'ok',
  down: 'down',
  connecting: 'unknown',
  degraded: 'degraded',
  disconnecting: 'down',
  error: 'down',
}

export function TunnelState({ tunnel }: { tunnel: Tunnel }) {
  const text = useText()
  const status = tunnel.status ?? ''
  return (
    <StateWord state={STATE[status] ?? 'unknown'}>
      {text.wizard.path.status[status] ?? (status || '-')}
    </StateWord>
  )
}

export function PathStep(props: StepProps) {
  const text = useText()
  const t = text.wizard.path
  const tunnels = useGet('/tunnels', {}, { every: 3000 })
  const [content, setContent] = useState('')
  const [name, setName] = useState('')
  const [login, setLogin] = useState({ username: '', password: '', key_passphrase: '' })
  const file = readVpnFile(content)
  const bring = useChange(async (chosen: VpnFile) => {
    const added =
      chosen.kind === 'wireguard'
        ? await call(client.POST('/tunnels/import-wireguard', { body: { name, config: content } }))
        : await call(
            client.POST('/tunnels/upload-ovpn', {
              body: {
                name,
                config: content,
                username: login.username || null,
                password: login.password || null,
                key_passphrase: login.key_passphrase || null,
              },
            }),
          )
    await call(client.POST('/tunnels/{id}/up', { params: { path: { id: added.data.id } } }))
    return added
  })
  const have = tunnels.data?.data ?? []
  const taken = have.find((tunnel) => tunnel.id === props.progress.tunnel)
  const error = bring.error instanceof ApiError ? bring.error : undefined
  const submit = () => {
    if (file)
      bring.mutate(file, {
        onSuccess: ({ data, warnings }) => {
          setContent('')
          setLogin({ username: '', password: '', key_passphrase: '' })
          say(t.imported(data.name), warnings)
          props.finish(data.name, { tunnel: data.id })
        },
      })
    else if (taken) props.finish(taken.name)
  }
  const read = async (chosen: File | undefined) => {
    if (!chosen) return
    setContent(await chosen.text())
    setName(tunnelName(chosen.name))
  }
  return (
    <StepPage
      {...props}
      step="path"
      title={t.title}
      lead={t.lead}
      action={file ? t.import : text.wizard.next}
      onAction={submit}
      busy={bring.isPending}
      disabled={file ? name === '' : taken === undefined}
    >
      {have.length > 0 ? (
        <Section title={t.have}>
          <Loaded query={tunnels}>
            {(list) => (
              <table className="tbl tbl--card" aria-label={t.have}>
                <tbody>
                  {list.map((tunnel) => (
                    <tr key={tunnel.id}>
                      <td>
                        <span className="two">
                          <span className="med">{tunnel.name}</span>
                          <small>{tunnel.type}</small>
                        </span>
                      </td>
                      <td>
                        <TunnelState tunnel={tunnel} />
                      </td>
                      <td className="mono">
                        {tunnel.endpoint_ip ?? tunnel.peers[0]?.endpoint ?? tunnel.remotes[0] ?? '-'}
                      </td>
                      <td className="num">
                        {taken === tunnel ? (
                          <Tag>{t.taken}</Tag>
                        ) : (
                          <Button
                            size="small"
                            onClick={() => props.finish(tunnel.name, { tunnel: tunnel.id })}
                          >
                            {t.use}
                          </Button>
                        )}
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            )}
          </Loaded>
        </Section>
      ) : null}
      <div className="pair">
        <div className="form">
          {error ? <ErrorSummary error={error} /> : bring.error ? <Failure error={bring.error} /> : null}
          <Field label={t.file}>
            {(id) => (
              <div
                className="dropzone"
                onDragOver={(event) => event.preventDefault()}
                onDrop={(event) => {
                  event.preventDefault()
                  void read(event.dataTransfer.files[0])
                }}
              >
                <p className="mid">{t.drop}</p>
                <input
                  id={id}
                  type="file"
                  accept=".conf,.ovpn,.txt"
                  onChange={(event) => void read(event.target.files?.[0])}
                />
              </div>
            )}
          </Field>
          {file ? null : (
            <TextArea
              label={t.paste}
              rows={5}
              value={content}
              error={content.trim() !== '' ? t.unknown : undefined}
              onChange={setContent}
              autoComplete="off"
              spellCheck={false}
            />
          )}
          {file ? (
            <>
              <TextField
                label={t.name}
                value={name}
                error={error?.of('name')}
                onChange={setName}
                autoComplete="off"
                required
              />
              {file.kind === 'openvpn' ? (
                <Login
                  value={login}
                  onChange={setLogin}
                  hint={file.needsLogin ? undefined : t.ifAny}
                  error={error}
                />
              ) : null}
            </>
          ) : null}
        </div>
        {file ? <Preview file={file} onDrop={() => setContent('')} /> : null}
      </div>
    </StepPage>
  )
}

interface LoginValue {
  username: string
  password: string
  key_passphrase: string
}

interface LoginProps {
  value: LoginValue
  onChange: (value: LoginValue) => void
  hint: string | undefined
  error: ApiError | undefined
}

function Login({ value, onChange, hint, error }: LoginProps) {
  const text = useText()
  const t = text.wizard.path
  return (
    <>
      <TextField
        label={t.username}
        hint={hint}
        value={value.username}
        error={error?.of('username')}
        onChange={(username) => onChange({ ...value, username })}
        autoComplete="off"
      />
      <TextField
        label={t.password}
        type="password"
        value={value.password}
        error={error?.of('password')}
        onChange={(password) => onChange({ ...value, password })}
        autoComplete="new-password"
      />
      <TextField
        label={t.keyPassphrase}
        hint={t.ifAny}
        type="password"
        value={value.key_passphrase}
        error={error?.of('key_passphrase')}
        onChange={(key_passphrase) => onChange({ ...value, key_passphrase })}
        autoComplete="new-password"
      />
    </>
  )
}

function Preview({ file, onDrop }: { file: VpnFile; onDrop: () => void }) {
  const text = useText()
  const t = text.wizard.path
  return (
    <Section
      title={t.preview}
      hint={t.kinds[file.kind]}
      actions={
        <Button size="small" kind="ghost" onClick={onDrop}>
          {text.common.cancel}
        </Button>
      }
    >
      <div className="diff">
        {file.lines.map((line, index) => (
          <span key={`${index} ${line.text}`}>
            {line.text} {line.hidden ? <em className="dim">{t.hidden}</em> : null}
          </span>
        ))}
      </div>
    </Section>
  )
}
