// Schedule, target and passphrase of backups.

import { call, client, type Schemas } from '@/api/client'
import { get } from '@/api/query'
import { Button } from '@/components/button'
import { useEdit } from '@/components/edit'
import { Check, Select, TextArea, TextField } from '@/components/fields'
import { FormErrors } from '@/components/form'
import { useText } from '@/text'

type Config = Schemas['BackupConfig']
type Form = {
  enabled: boolean
  schedule: string
  retain: string
  type: Schemas['TargetTypeInput']
  url: string
  username: string
  path: string
  host_key: string
  region: string
  ca_certificate: string
}

function formOf({ enabled, schedule, retain, target }: Config): Form {
  const { type, url, username, path, host_key, region, ca_certificate } = target
  return {
    enabled,
    schedule,
    retain: String(retain),
    type,
    url,
    username,
    path,
    host_key,
    region,
    ca_certificate,
  }
}

type Secrets = {
  passphrase: string
  secret: string
  private_key: string
}

const NO_SECRETS: Secrets = { passphrase: '', secret: '', private_key: '' }

const SECRETS = ['passphrase', 'secret', 'private_key'] as const

function inputOf(form: Form & Secrets, config: Config) {
  const { enabled, schedule, retain, passphrase, secret, private_key, ...target } = form
  return {
    enabled,
    schedule,
    retain: Number(retain),
    include: config.include,
    target: {
      ...target,
      ...(secret ? { secret } : {}),
      ...(private_key ? { private_key } : {}),
    },
    ...(passphrase ? { passphrase } : {}),
  }
}

interface Props {
  config: Config
  etag: string | null
  zone: string
}

export function BackupConfig({ config, etag, zone }: Props) {
  const text = useText()
  const t = text.system.backups
  const edit = useEdit<Form & Secrets>({
    key: 'backup',
    version: { value: { ...formOf(config), ...NO_SECRETS }, etag },
    secrets: SECRETS,
    save: (form, tag) =>
      call(
        client.PUT('/backup/config', {
          params: { header: tag ? { 'If-Match': tag } : {} },
          body: inputOf(form, config),
        }),
      ),
    read: async () => {
      const now = await get('/backup/config')
      return { value: { ...formOf(now.data), ...NO_SECRETS }, etag: now.etag }
    },
  })
  const { draft, of } = edit
  const { type } = draft.value
  const target = (field: keyof Form) => ({
    value: String(draft.value[field]),
    error: of(`target.${field}`),
    onChange: (value: string) => draft.set(field, value),
  })
  return (
    <form
      className="form form--2"
      onSubmit={(event) => {
        event.preventDefault()
        edit.submit()
      }}
    >
      {edit.error ? (
        <div className="wide">
          <FormErrors edit={edit} />
        </div>
      ) : null}
      <div className="wide">
        <Check
          label={t.enabled}
          checked={draft.value.enabled}
          onChange={(value) => draft.set('enabled', value)}
        />
      </div>
      <TextField
        label={t.schedule}
        hint={t.scheduleHint(zone)}
        value={draft.value.schedule}
        error={of('schedule')}
        onChange={(value) => draft.set('schedule', value)}
        spellCheck={false}
      />
      <TextField
        label={t.retain}
        type="number"
        min={1}
        max={1000}
        value={draft.value.retain}
        error={of('retain')}
        onChange={(value) => draft.set('retain', value)}
      />
      <Select
        label={t.type}
        value={type}
        error={of('target.type')}
        options={(['local', 'sftp', 'webdav', 's3'] as const).map(
          (each) => [each as Form['type'], t.types[each] ?? each] as const,
        )}
        onChange={(value) => draft.set('type', value)}
      />
      <TextField label={t.path} hint={t.pathHint} spellCheck={false} {...target('path')} />
      {type === 'local' ? null : (
        <>
          <TextField label={t.url} hint={t.urlHint} spellCheck={false} {...target('url')} />
          <TextField label={t.username} autoComplete="off" {...target('username')} />
          <TextField
            label={t.secret}
            type="password"
            autoComplete="new-password"
            hint={config.target.has_secret ? t.kept : undefined}
            value={draft.value.secret}
            error={of('target.secret')}
            onChange={(secret) => draft.set('secret', secret)}
          />
        </>
      )}
      {type === 'sftp' ? (
        <>
          <TextField label={t.hostKey} hint={t.hostKeyHint} spellCheck={false} {...target('host_key')} />
          <div className="wide">
            <TextArea
              label={t.privateKey}
              hint={config.target.has_private_key ? t.kept : undefined}
              rows={3}
              value={draft.value.private_key}
              error={of('target.private_key')}
              onChange={(private_key) => draft.set('private_key', private_key)}
            />
          </div>
        </>
      ) : null}
      {type === 's3' ? <TextField label={t.region} {...target('region')} /> : null}
      {type === 's3' || type === 'webdav' ? (
        <div className="wide">
          <TextArea label={t.ca} rows={3} {...target('ca_certificate')} />
        </div>
      ) : null}
      <TextField
        label={t.passphrase}
        type="password"
        autoComplete="new-password"
        hint={config.has_passphrase ? `${t.passphraseHint} ${t.kept}` : t.passphraseHint}
        value={draft.value.passphrase}
        error={of('passphrase')}
        onChange={(passphrase) => draft.set('passphrase', passphrase)}
      />
      <div className="btns wide">
        <Button submit needs="admin" busy={edit.busy}>
          {text.common.save}
        </Button>
      </div>
      {edit.dialog}
    </form>
  )
}
