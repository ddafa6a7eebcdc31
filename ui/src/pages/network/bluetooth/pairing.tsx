// The pairing that runs or was the last, with what a user has to do, and the form that begins one.

import { call, client, type Schemas } from '@/api/client'
import { ActionForm } from '@/components/action-form'
import { useFormAction } from '@/components/action'
import { Button } from '@/components/button'
import { useFields } from '@/components/draft'
import { Facts } from '@/components/facts'
import { FieldList } from '@/components/form-fields'
import { Failure, Section } from '@/components/section'
import { useText } from '@/text'

type Pairing = Schemas['Pairing']

interface Input {
  mac: string
  pin?: string
  passkey?: string
  accept?: boolean
}

const pair = (body: Input) => call(client.POST('/bluetooth/pair', { body }))

export function PairingSection({ pairing }: { pairing: Pairing }) {
  const words = useText().bluetooth.pairing
  const { mac, state, passkey, error } = pairing
  const answer = useFormAction(pair, () => undefined)
  return (
    <Section title={words.title} hint={mac}>
      <Failure error={answer.error} />
      <p>{words.states[state]}</p>
      {passkey !== null ? <p className="strong mono">{passkey}</p> : null}
      {error !== null ? (
        <p className="dim" lang="en">
          {error}
        </p>
      ) : null}
      {state === 'enter_pin' ? <PinForm mac={mac} /> : null}
      <div className="btns">
        {state === 'confirm_passkey' && passkey !== null ? (
          <Button
            kind="primary"
            needs="operator"
            busy={answer.busy}
            onClick={() => answer.run({ mac, passkey })}
          >
            {words.confirm}
          </Button>
        ) : null}
        {state === 'accept' ? (
          <Button
            kind="primary"
            needs="operator"
            busy={answer.busy}
            onClick={() => answer.run({ mac, accept: true })}
          >
            {words.accept}
          </Button>
        ) : null}
        {state === 'confirm_passkey' || state === 'accept' || state === 'enter_pin' ? (
          <Button needs="operator" busy={answer.busy} onClick={() => answer.run({ mac, accept: false })}>
            {words.refuse}
          </Button>
        ) : null}
      </div>
    </Section>
  )
}

function PinForm({ mac }: { mac: string }) {
  const words = useText().bluetooth.pairing
  const draft = useFields({ pin: '' })
  const send = useFormAction(pair, () => undefined)
  return (
    <ActionForm
      of={send}
      onSubmit={() => send.run({ mac, pin: draft.value.pin })}
      word={words.send}
      needs="operator"
    >
      <FieldList
        draft={draft}
        texts={words.fields}
        error={send.of}
        fields={[{ field: 'pin', required: true }]}
      />
    </ActionForm>
  )
}

/** Begins a pairing. What the user then has to do is on the page. */
export function PairForm({ mac, onClose }: { mac: string; onClose: () => void }) {
  const words = useText().bluetooth
  const draft = useFields({ pin: '' })
  const begin = useFormAction(pair, onClose)
  const { pin } = draft.value
  return (
    <ActionForm
      of={begin}
      onSubmit={() => begin.run(pin === '' ? { mac } : { mac, pin })}
      word={words.pairing.begin}
      needs="operator"
      onCancel={onClose}
    >
      <Facts facts={[[words.facts.address, mac, 'mono']]} />
      <FieldList draft={draft} texts={words.pairing.fields} error={begin.of} fields={[{ field: 'pin' }]} />
    </ActionForm>
  )
}
