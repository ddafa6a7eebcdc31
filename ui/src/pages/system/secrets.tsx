// Encryption of the stored secrets, and its passphrase.

import { useState } from 'react'
import { call, client, type Schemas } from '@/api/client'
import { Button } from '@/components/button'
import { Confirm } from '@/components/confirm'
import { TextField } from '@/components/fields'
import { PasswordField } from '@/components/password-field'
import { StateWord } from '@/components/state'
import { useFormAction } from '@/components/action'
import { ActionForm } from '@/components/action-form'
import { useText } from '@/text'

type Status = Schemas['EncryptionStatus']

export function Secrets({ status }: { status: Status }) {
  const t = useText().system.security
  const [clearing, setClearing] = useState(false)
  const clear = useFormAction(
    () => call(client.POST('/secrets/clear-passphrase')),
    () => {
      setClearing(false)
      return t.cleared
    },
  )
  return (
    <>
      <Facts status={status} />
      {status.locked ? (
        <p>
          <StateWord state="degraded">{t.locked}</StateWord>
        </p>
      ) : null}
      <PassphraseForm encrypted={status.encrypted} onClear={() => setClearing(true)} />
      <Confirm
        open={clearing}
        onClose={() => setClearing(false)}
        title={t.clearTitle}
        consequence={t.clearConsequence(status.total_secrets)}
        name={t.clearName}
        action={t.clear}
        busy={clear.busy}
        error={clear.error}
        onConfirm={() => clear.run()}
      />
    </>
  )
}

function Facts({ status }: { status: Status }) {
  const t = useText().system.security
  return (
    <dl className="facts">
      <dt>{t.stored}</dt>
      <dd>{status.total_secrets}</dd>
      <dt>{t.encrypted}</dt>
      <dd>
        {status.total_secrets === 0 ? (
          '-'
        ) : (
          <StateWord state={status.encrypted_count === status.total_secrets ? 'ok' : 'degraded'}>
            {status.encrypted_count}
          </StateWord>
        )}
      </dd>
      <dt>{t.unreadable}</dt>
      <dd>
        {status.unreadable_count === 0 ? (
          0
        ) : (
          <StateWord state="degraded">{status.unreadable_count}</StateWord>
        )}
      </dd>
      <dt>{t.source}</dt>
      <dd>{t.sources[status.passphrase]}</dd>
    </dl>
  )
}

function PassphraseForm({ encrypted, onClear }: { encrypted: boolean; onClear: () => void }) {
  const t = useText().system.security
  const [passphrase, setPassphrase] = useState('')
  const [repeated, setRepeated] = useState('')
  const set = useFormAction(
    () => call(client.POST('/secrets/set-passphrase', { body: { passphrase } })),
    () => {
      setPassphrase('')
      setRepeated('')
      return t.wasSet
    },
  )
  const submit = () => set.run()
  return (
    <ActionForm
      of={set}
      onSubmit={submit}
      word={t.set}
      kind="plain"
      needs="admin"
      disabled={passphrase === '' || passphrase !== repeated}
      buttons={
        encrypted ? (
          <Button kind="ghost" needs="admin" onClick={onClear}>
            {t.clear}
          </Button>
        ) : null
      }
    >
      <PasswordField
        label={t.newPassphrase}
        hint={t.passphraseHint}
        value={passphrase}
        error={set.of('passphrase')}
        onChange={setPassphrase}
        fresh
        required
      />
      <TextField
        label={t.repeat}
        type="password"
        autoComplete="new-password"
        value={repeated}
        error={repeated !== '' && repeated !== passphrase ? t.differ : undefined}
        onChange={setRepeated}
        required
      />
    </ActionForm>
  )
}
