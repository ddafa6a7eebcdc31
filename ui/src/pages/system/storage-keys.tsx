// Passphrase, stored key and sealed key of the encrypted storage.

import { useState } from 'react'
import { call, client, type Schemas } from '@/api/client'
import { ActionForm } from '@/components/action-form'
import { useAction, useFormAction } from '@/components/action'
import { Button } from '@/components/button'
import { TextField } from '@/components/fields'
import { PasswordField } from '@/components/password-field'
import { English } from '@/components/said'
import { useText } from '@/text'

export function StorageKeys({ status }: { status: Schemas['EncryptedStorageStatus'] }) {
  return (
    <>
      <PassphraseForm />
      {status.has_stored_key ? <RemoveKey /> : <StoreKeyForm />}
      <SealedKey tpm2={status.tpm2} />
    </>
  )
}

/** Key that a TPM seals, where one can. */
function SealedKey({ tpm2 }: { tpm2: Schemas['Tpm2Status'] }) {
  const t = useText().storage
  if (tpm2.opens_at_start) return <RemoveSealedKey />
  if (tpm2.supported) return <SealKeyForm />
  return (
    <p>
      {t.noTpm} <English>{tpm2.needs}</English>
    </p>
  )
}

function SealKeyForm() {
  const t = useText().storage
  const [passphrase, setPassphrase] = useState('')
  const [pcrs, setPcrs] = useState('7')
  const numbers = pcrs.split(/[ ,]+/).filter((word) => word !== '')
  const seal = useFormAction(
    () =>
      call(
        client.PUT('/storage/encrypted/tpm2-key', {
          body: { passphrase, pcrs: numbers.map(Number) },
        }),
      ),
    () => {
      setPassphrase('')
      return t.keySealed
    },
  )
  return (
    <ActionForm
      of={seal}
      onSubmit={() => seal.run()}
      word={t.sealKey}
      kind="plain"
      needs="admin"
      disabled={passphrase === '' || numbers.length === 0}
    >
      <TextField
        label={t.pcrsLabel}
        hint={t.pcrsHint}
        value={pcrs}
        error={seal.of('pcrs')}
        onChange={setPcrs}
        required
      />
      <PasswordField
        label={t.passphrase}
        value={passphrase}
        error={seal.of('passphrase')}
        onChange={setPassphrase}
        required
      />
    </ActionForm>
  )
}

function RemoveSealedKey() {
  const t = useText().storage
  const remove = useAction(
    () => call(client.DELETE('/storage/encrypted/tpm2-key')),
    () => t.sealedRemoved,
  )
  return (
    <div className="btns">
      <Button kind="plain" needs="admin" does={remove}>
        {t.removeSealed}
      </Button>
    </div>
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
