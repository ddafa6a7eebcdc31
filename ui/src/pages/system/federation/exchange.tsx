// Keys are exchanged with another gateway, which becomes a node that waits for approval at both ends.

import { call, client } from '@/api/client'
import { ActionForm } from '@/components/action-form'
import { useFormAction } from '@/components/action'
import { useFields } from '@/components/draft'
import { FieldList } from '@/components/form-fields'
import { useText } from '@/text'
import type { Node } from './nodes'

interface Props {
  onCancel: () => void
  onDone: (node: Node) => void
}

export function ExchangeForm({ onCancel, onDone }: Props) {
  const words = useText().federation.exchange
  const draft = useFields({ peer: '', url: window.location.origin, name: '', ca_certificate: '' })
  const send = useFormAction(
    (body: typeof draft.value) => call(client.POST('/nodes/exchange', { body })),
    (node) => {
      onDone(node)
      return words.done(node.name)
    },
  )
  return (
    <ActionForm
      of={send}
      className="form form--2"
      onSubmit={() => send.run(draft.value)}
      word={words.send}
      needs="admin"
      onCancel={onCancel}
    >
      <FieldList
        draft={draft}
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
