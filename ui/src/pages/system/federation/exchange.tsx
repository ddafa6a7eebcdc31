// Keys are exchanged with another gateway, which becomes a node that waits for approval at both ends.

import { useState } from 'react'
import { call, client } from '@/api/client'
import { ActionForm } from '@/components/action-form'
import { useFormAction } from '@/components/action'
import { FieldList } from '@/components/form-fields'
import { useText } from '@/text'
import type { Node } from './nodes'

interface Props {
  onCancel: () => void
  onDone: (node: Node) => void
}

export function ExchangeForm({ onCancel, onDone }: Props) {
  const words = useText().federation.exchange
  const [value, setValue] = useState({ peer: '', url: window.location.origin, name: '', ca_certificate: '' })
  const send = useFormAction(
    (body: typeof value) => call(client.POST('/nodes/exchange', { body })),
    (node) => {
      onDone(node)
      return words.done(node.name)
    },
  )
  return (
    <ActionForm
      of={send}
      className="form form--2"
      onSubmit={() => send.run(value)}
      word={words.send}
      needs="admin"
      onCancel={onCancel}
    >
      <FieldList
        draft={{ value, set: (field, next) => setValue((before) => ({ ...before, [field]: next })) }}
        texts={words.fields}
        error={send.of}
        fields={[
          { field: 'peer', required: true, input: { type: 'url' } },
          { field: 'url', required: true, input: { type: 'url' } },
          { field: 'name' },
          { field: 'ca_certificate', kind: 'area', rows: 3, wide: true },
        ]}
      />
    </ActionForm>
  )
}
