// Schedule, target and passphrase of backups.

import type { Schemas } from '@/api/client'
import type { Edit } from '@/components/edit'
import { FieldList } from '@/components/form-fields'
import { resource, useObjectEdit } from '@/components/resource'
import { ActionForm } from '@/components/action-form'
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

function formOf(config: Config | null): Form {
  const target = config?.target
  return {
    enabled: config?.enabled ?? false,
    schedule: config?.schedule ?? '',
    retain: String(config?.retain ?? 1),
    type: target?.type ?? 'local',
    url: target?.url ?? '',
    username: target?.username ?? '',
    path: target?.path ?? '',
    host_key: target?.host_key ?? '',
    region: target?.region ?? '',
    ca_certificate: target?.ca_certificate ?? '',
  }
}

type Secrets = {
  passphrase: string
  secret: string
  private_key: string
}

const backupConfig = resource('/backup/config', {
  key: 'backup',
  secrets: ['passphrase', 'secret', 'private_key'],
  fields: (config: Config | null): Form & Secrets => ({
    ...formOf(config),
    passphrase: '',
    secret: '',
    private_key: '',
  }),
  body: ({ enabled, schedule, retain, passphrase, secret, private_key, ...target }, config) => ({
    enabled,
    schedule,
    retain: Number(retain),
    include: config?.include,
    target: {
      ...target,
      ...(secret ? { secret } : {}),
      ...(private_key ? { private_key } : {}),
    },
    ...(passphrase ? { passphrase } : {}),
  }),
})

interface Props {
  config: Config
  etag: string | null
  zone: string
}

export function BackupConfig({ config, etag, zone }: Props) {
  const text = useText()
  const t = text.system.backups
  const edit = useObjectEdit(backupConfig, { data: config, etag }, { key: 'backup' })
  const { draft, of } = edit
  return (
    <ActionForm
      of={edit}
      className="form form--2"
      onSubmit={edit.submit}
      word={text.common.save}
      kind="plain"
      needs="admin"
    >
      <FieldList
        draft={draft}
        error={of}
        fields={[
          { field: 'enabled', kind: 'check', wide: true, label: t.enabled },
          { field: 'schedule', label: t.schedule, hint: t.scheduleHint(zone) },
          { field: 'retain', kind: 'number', label: t.retain, min: 1, max: 1000 },
        ]}
      />
      <TargetFields edit={edit} config={config} />
      <FieldList
        draft={draft}
        error={of}
        fields={[
          {
            field: 'passphrase',
            kind: 'secret',
            label: t.passphrase,
            hint: config.has_passphrase ? `${t.passphraseHint} ${t.kept}` : t.passphraseHint,
          },
        ]}
      />
      {edit.dialog}
    </ActionForm>
  )
}

const TYPES = ['local', 'sftp', 'webdav', 's3']

/** Where the backups are written. */
function TargetFields({ edit, config }: { edit: Edit<Form & Secrets>; config: Config }) {
  const t = useText().system.backups
  const { type } = edit.draft.value
  const { has_secret, has_private_key } = config.target
  const remote = type !== 'local'
  const sftp = type === 'sftp'
  return (
    <FieldList
      draft={edit.draft}
      error={(path) => edit.of(`target.${path}`)}
      fields={[
        {
          field: 'type',
          kind: 'choice',
          label: t.type,
          options: TYPES.map((each) => [each, t.types[each] ?? each]),
        },
        { field: 'path', label: t.path, hint: t.pathHint },
        remote && { field: 'url', label: t.url, hint: t.urlHint },
        remote && { field: 'username', label: t.username },
        remote && {
          field: 'secret',
          kind: 'secret',
          label: t.secret,
          hint: has_secret ? t.kept : undefined,
        },
        sftp && { field: 'host_key', label: t.hostKey, hint: t.hostKeyHint },
        sftp && {
          field: 'private_key',
          kind: 'area',
          rows: 3,
          wide: true,
          label: t.privateKey,
          hint: has_private_key ? t.kept : undefined,
        },
        type === 's3' && { field: 'region', label: t.region },
        (type === 's3' || type === 'webdav') && {
          field: 'ca_certificate',
          kind: 'area',
          rows: 3,
          wide: true,
          label: t.ca,
        },
      ]}
    />
  )
}
