// Set-up, opening, closing and destruction of the encrypted storage.

import { useState } from 'react'
import { call, client, type Schemas } from '@/api/client'
import { ActionForm } from '@/components/action-form'
import { useAction, useFormAction } from '@/components/action'
import { Button } from '@/components/button'
import { Confirm } from '@/components/confirm'
import { Check, TextField } from '@/components/fields'
import { PasswordField } from '@/components/password-field'
import { NewPassphraseFields, useNewPassphrase } from '@/components/new-passphrase'
import { useText } from '@/text'

const CONTENTS: Schemas['StorageContent'][] = [
  'query_log',
  'flow_log',
  'captures',
  'observed_hosts',
  'anomalies',
  'dhcp_leases',
  'backups',
]

export function SetUpForm() {
  const t = useText().storage
  const [size, setSize] = useState('1024')
  const [contents, setContents] = useState(CONTENTS)
  const passphrase = useNewPassphrase()
  const setUp = useFormAction(
    () =>
      call(
        client.POST('/storage/encrypted/setup', {
          body: { size_mb: Number(size), passphrase: passphrase.value, contents },
        }),
      ),
    () => {
      passphrase.clear()
      return t.begun
    },
  )
  return (
    <ActionForm
      of={setUp}
      onSubmit={() => setUp.run()}
      word={t.setUp}
      needs="admin"
      disabled={!passphrase.isComplete || contents.length === 0}
    >
      <TextField
        label={t.sizeMb}
        hint={t.sizeHint}
        type="number"
        min={64}
        value={size}
        error={setUp.of('size_mb')}
        onChange={setSize}
        required
      />
      <Contents chosen={contents} onChange={setContents} />
      <NewPassphraseFields
        passphrase={passphrase}
        label={t.passphrase}
        texts={t}
        error={setUp.of('passphrase')}
      />
    </ActionForm>
  )
}

/** Records that will live in the storage. */
function Contents({
  chosen,
  onChange,
}: {
  chosen: Schemas['StorageContent'][]
  onChange: (chosen: Schemas['StorageContent'][]) => void
}) {
  const t = useText().storage
  return (
    <fieldset className="choices">
      <legend>{t.contents}</legend>
      {CONTENTS.map((content) => (
        <Check
          key={content}
          label={t.content[content]}
          checked={chosen.includes(content)}
          onChange={(on) =>
            onChange(CONTENTS.filter((each) => (each === content ? on : chosen.includes(each))))
          }
        />
      ))}
      <p className="dim sm">{t.contentsHint}</p>
    </fieldset>
  )
}

export function LockedForm() {
  const t = useText().storage
  const [passphrase, setPassphrase] = useState('')
  const unlock = useFormAction(
    () => call(client.POST('/storage/encrypted/unlock', { body: { passphrase } })),
    () => {
      setPassphrase('')
      return t.unlocked
    },
  )
  return (
    <>
      <ActionForm
        of={unlock}
        onSubmit={() => unlock.run()}
        word={t.unlock}
        needs="admin"
        disabled={passphrase === ''}
      >
        <PasswordField
          label={t.passphrase}
          value={passphrase}
          error={unlock.of('passphrase')}
          onChange={setPassphrase}
          required
        />
      </ActionForm>
      <TearDown />
    </>
  )
}

export function OpenButtons() {
  const t = useText().storage
  const lock = useAction(
    () => call(client.POST('/storage/encrypted/lock')),
    () => t.locked,
  )
  return (
    <div className="btns">
      <Button kind="plain" needs="admin" does={lock}>
        {t.lock}
      </Button>
    </div>
  )
}

export function TearDown() {
  const t = useText().storage
  const [asking, setAsking] = useState(false)
  const tearDown = useFormAction(
    () => call(client.POST('/storage/encrypted/teardown')),
    () => {
      setAsking(false)
      return t.tornDown
    },
  )
  return (
    <div className="btns">
      <Button kind="ghost" needs="admin" onClick={() => setAsking(true)}>
        {t.tearDown}
      </Button>
      <Confirm
        open={asking}
        onClose={() => setAsking(false)}
        title={t.tearDownTitle}
        consequence={t.tearDownConsequence}
        name={t.tearDownName}
        action={t.tearDown}
        busy={tearDown.busy}
        error={tearDown.error}
        onConfirm={() => tearDown.run()}
      />
    </div>
  )
}
