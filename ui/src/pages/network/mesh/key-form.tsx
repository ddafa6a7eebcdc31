// A new pre-auth key: its terms, and then the command and the QR code, which are shown once.

import { useState } from 'react'
import { call, client, type Schemas } from '@/api/client'
import { ActionForm } from '@/components/action-form'
import { useFormAction } from '@/components/action'
import { Button } from '@/components/button'
import { Command } from '@/components/command'
import { useFields } from '@/components/draft'
import { Facts } from '@/components/facts'
import { FieldList } from '@/components/form-fields'
import { Clock } from '@/components/time'
import { useText } from '@/text'

type Terms = Schemas['KeyTermsInput']
type Shown = Schemas['ShownKey']

const HOUR = 3600
const BLANK: Required<Terms> = {
  reusable: false,
  ephemeral: false,
  expires_in: HOUR,
  tags: [],
  usage_limit: 0,
}

export function KeyForm({ onClose }: { onClose: () => void }) {
  const words = useText().mesh.key
  const draft = useFields(BLANK)
  const [shown, setShown] = useState<Shown | null>(null)
  const create = useFormAction((body: Terms) => call(client.POST('/mesh/create-key', { body })), setShown)
  if (shown) return <NewKey shown={shown} onClose={onClose} />
  return (
    <ActionForm
      of={create}
      className="form form--2"
      onSubmit={() => create.run(draft.value)}
      word={words.create}
      needs="admin"
      onCancel={onClose}
    >
      <FieldList
        draft={draft}
        texts={words.fields}
        error={create.of}
        fields={[
          { field: 'expires_in', kind: 'number', min: 1, max: 31_536_000, required: true },
          { field: 'tags', kind: 'lines', rows: 2 },
          { field: 'reusable', kind: 'check' },
          { field: 'ephemeral', kind: 'check' },
          draft.value.reusable && { field: 'usage_limit', kind: 'number', min: 0 },
        ]}
      />
    </ActionForm>
  )
}

function NewKey({ shown, onClose }: { shown: Shown; onClose: () => void }) {
  const text = useText()
  const words = text.mesh.key
  return (
    <div className="form">
      <p className="strong">{words.once}</p>
      <p>{words.host}</p>
      <Command label={words.copyCommand}>{shown.command}</Command>
      <p>{words.phone}</p>
      <Facts
        facts={[
          [words.server, shown.login_server, 'mono'],
          [words.expires, <Clock key="expires" time={shown.expires_at} />],
        ]}
      />
      <img
        alt={words.qr}
        src={`data:image/svg+xml,${encodeURIComponent(shown.qr_svg)}`}
        width={200}
        height={200}
      />
      <div className="btns">
        <Button kind="primary" onClick={onClose}>
          {text.common.close}
        </Button>
      </div>
    </div>
  )
}
