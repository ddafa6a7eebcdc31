// Schedule, target and passphrase of backups.

import { useState } from 'react'
import { ApiError, call, client, type Schemas } from '@/api/client'
import { useChange } from '@/api/query'
import { say, sayError } from '@/app/toasts'
import { Button } from '@/components/button'
import { merge, useDraft, type Clash } from '@/components/draft'
import { Check, ErrorSummary, Select, TextArea, TextField } from '@/components/fields'
import { MergeDialog } from '@/components/merge-dialog'
import { Failure } from '@/components/section'
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

interface Secrets {
  passphrase: string
  secret: string
  private_key: string
}

const NO_SECRETS: Secrets = { passphrase: '', secret: '', private_key: '' }

function inputOf(form: Form, secrets: Secrets, config: Config) {
  const { enabled, schedule, retain, ...target } = form
  return {
    enabled,
    schedule,
    retain: Number(retain),
    include: config.include,
    target: {
      ...target,
      ...(secrets.secret ? { secret: secrets.secret } : {}),
      ...(secrets.private_key ? { private_key: secrets.private_key } : {}),
    },
    ...(secrets.passphrase ? { passphrase: secrets.passphrase } : {}),
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
  const [base, setBase] = useState({ form: formOf(config), etag })
  const draft = useDraft('backup', base.form)
  const [secrets, setSecrets] = useState(NO_SECRETS)
  const [clashes, setClashes] = useState<{ list: Clash[]; merged: Form; theirs: Form; etag: string | null }>()
  const save = useChange(({ form, match }: { form: Form; match: string | null }) =>
    call(
      client.PUT('/backup/config', {
        params: { header: match ? { 'If-Match': match } : {} },
        body: inputOf(form, secrets, config),
      }),
    ),
  )
  const reread = async () => {
    try {
      const now = await call(client.GET('/backup/config'))
      const theirs = formOf(now.data)
      const { merged, clashes: list } = merge(base.form, draft.value, theirs)
      setClashes({ list, merged, theirs, etag: now.etag })
    } catch (error) {
      sayError(error as Error)
    }
  }
  const submit = (form: Form, match: string | null) =>
    save.mutate(
      { form, match },
      {
        onSuccess: ({ data, etag: next, warnings }) => {
          setBase({ form: formOf(data), etag: next })
          draft.replace(formOf(data))
          setSecrets(NO_SECRETS)
          say(text.common.saved, warnings)
        },
        onError: (error) => void (error instanceof ApiError && error.status === 412 ? reread() : undefined),
      },
    )
  const error = save.error instanceof ApiError && save.error.status !== 412 ? save.error : undefined
  const { type } = draft.value
  const target = (field: keyof Form) => ({
    value: String(draft.value[field]),
    error: error?.of(`target.${field}`),
    onChange: (value: string) => draft.set(field, value),
  })
  return (
    <form
      className="form form--2"
      onSubmit={(event) => {
        event.preventDefault()
        submit(draft.value, base.etag)
      }}
    >
      {error ? (
        <div className="wide">
          <ErrorSummary error={error} />
        </div>
      ) : null}
      {save.error && !(save.error instanceof ApiError) ? <Failure error={save.error} /> : null}
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
        error={error?.of('schedule')}
        onChange={(value) => draft.set('schedule', value)}
        spellCheck={false}
      />
      <TextField
        label={t.retain}
        type="number"
        min={1}
        max={1000}
        value={draft.value.retain}
        error={error?.of('retain')}
        onChange={(value) => draft.set('retain', value)}
      />
      <Select
        label={t.type}
        value={type}
        error={error?.of('target.type')}
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
            value={secrets.secret}
            error={error?.of('target.secret')}
            onChange={(secret) => setSecrets({ ...secrets, secret })}
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
              value={secrets.private_key}
              error={error?.of('target.private_key')}
              onChange={(private_key) => setSecrets({ ...secrets, private_key })}
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
        value={secrets.passphrase}
        error={error?.of('passphrase')}
        onChange={(passphrase) => setSecrets({ ...secrets, passphrase })}
      />
      <div className="btns wide">
        <Button submit needs="admin" busy={save.isPending}>
          {text.common.save}
        </Button>
      </div>
      {clashes ? (
        <MergeDialog
          clashes={clashes.list}
          onClose={() => setClashes(undefined)}
          onMerge={(fields) => {
            const merged = { ...clashes.merged }
            for (const field of fields)
              Object.assign(merged, { [field]: clashes.theirs[field as keyof Form] })
            setClashes(undefined)
            setBase({ form: clashes.theirs, etag: clashes.etag })
            draft.replace(merged)
            submit(merged, clashes.etag)
          }}
        />
      ) : null}
    </form>
  )
}
