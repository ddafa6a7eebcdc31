// Encryption of the stored secrets, and its passphrase.

import { useState } from 'react'
import { call, client, type Schemas } from '@/api/client'
import { Facts } from '@/components/facts'
import { Button } from '@/components/button'
import { Confirm } from '@/components/confirm'
import { StateWord, type State } from '@/components/state'
import { useFormAction } from '@/components/action'
import { ActionForm } from '@/components/action-form'
import { NewPassphraseFields, useNewPassphrase } from '@/components/new-passphrase'
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
      <SecretFacts status={status} />
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

function SecretFacts({ status }: { status: Status }) {
  const t = useText().system.security
  const { total_secrets: total, encrypted_count: encrypted, unreadable_count: unreadable } = status
  const counted = (state: State, count: number) => <StateWord state={state}>{count}</StateWord>
  return (
    <Facts
      facts={[
        [t.stored, total],
        [t.encrypted, total === 0 ? null : counted(encrypted === total ? 'ok' : 'degraded', encrypted)],
        [t.unreadable, unreadable === 0 ? 0 : counted('degraded', unreadable)],
        [t.source, t.sources[status.passphrase]],
      ]}
    />
  )
}

function PassphraseForm({ encrypted, onClear }: { encrypted: boolean; onClear: () => void }) {
  const t = useText().system.security
  const passphrase = useNewPassphrase()
  const set = useFormAction(
    () => call(client.POST('/secrets/set-passphrase', { body: { passphrase: passphrase.value } })),
    () => {
      passphrase.clear()
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
      disabled={!passphrase.isComplete}
      buttons={
        encrypted ? (
          <Button kind="ghost" needs="admin" onClick={onClear}>
            {t.clear}
          </Button>
        ) : null
      }
    >
      <NewPassphraseFields
        passphrase={passphrase}
        label={t.newPassphrase}
        texts={t}
        error={set.of('passphrase')}
      />
    </ActionForm>
  )
}
