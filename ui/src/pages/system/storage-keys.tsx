// Passphrase and stored key of the encrypted storage.

import { useState } from 'react'
import { call, client } from '@/api/client'
import { ActionForm } from '@/components/action-form'
import { useAction, useFormAction } from '@/components/action'
import { Button } from '@/components/button'
import { PasswordField } from '@/components/password-field'
import { useText } from '@/text'

export function StorageKeys({ hasKey }: { hasKey: boolean }) {
  return (
    <>
      <PassphraseForm />
      {hasKey ? <RemoveKey /> : <StoreKeyForm />}
    </>
  )
}

function PassphraseForm() {
  const t = useText().storage
  const [present, setPresent] = useState('')
  const [fresh, setFresh] = useState('')
  const change = useFormAction(
    () =>
      call(
        client.PUT('/storage/encrypted/passphrase', {
          body: { passphrase: present, new_passphrase: fresh },
        }),
      ),
    () => {
      setPresent('')
      setFresh('')
      return t.changed
    },
  )
  return (
    <ActionForm
      of={change}
      onSubmit={() => change.run()}
      word={t.change}
      kind="plain"
      needs="admin"
      disabled={present === '' || fresh === ''}
    >
      <PasswordField
        label={t.present}
        value={present}
        error={change.of('passphrase')}
        onChange={setPresent}
        required
      />
      <PasswordField
        label={t.newPassphrase}
        hint={t.passphraseHint}
        value={fresh}
        error={change.of('new_passphrase')}
        onChange={setFresh}
        fresh
        required
      />
    </ActionForm>
  )
}

function StoreKeyForm() {
  const t = useText().storage
  const [passphrase, setPassphrase] = useState('')
  const store = useFormAction(
    () => call(client.PUT('/storage/encrypted/stored-key', { body: { passphrase } })),
    () => {
      setPassphrase('')
      return t.keyStored
    },
  )
  return (
    <ActionForm
      of={store}
      onSubmit={() => store.run()}
      word={t.storeKey}
      kind="plain"
      needs="admin"
      disabled={passphrase === ''}
    >
      <PasswordField
        label={t.passphrase}
        value={passphrase}
        error={store.of('passphrase')}
        onChange={setPassphrase}
        required
      />
    </ActionForm>
  )
}

function RemoveKey() {
  const t = useText().storage
  const remove = useAction(
    () => call(client.DELETE('/storage/encrypted/stored-key')),
    () => t.keyRemoved,
  )
  return (
    <div className="btns">
      <Button kind="plain" needs="admin" does={remove}>
        {t.removeKey}
      </Button>
    </div>
  )
}
