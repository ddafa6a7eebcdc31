import { call, client } from '@/api/client'
import { Confirm } from '@/components/confirm'
import { useFormAction } from '@/components/action'
import { useText } from '@/text'
import type { Policy } from './model'

interface Props {
  policy: Policy
  open: boolean
  onClose: () => void
  onDeleted?: () => void
}

export function DeletePolicy({ policy, open, onClose, onDeleted }: Props) {
  const text = useText()
  const remove = useFormAction(
    () =>
      call(
        client.DELETE('/routing/policies/{id}', {
          params: { path: { id: policy.id }, header: { 'If-Match': `"${policy.revision}"` } },
        }),
      ),
    () => {
      onClose()
      onDeleted?.()
      return text.common.deleted(policy.name)
    },
  )
  return (
    <Confirm
      open={open}
      onClose={onClose}
      title={text.policies.deleteTitle(policy.name)}
      consequence={text.policies.deleteMeans(policy.name)}
      name={policy.name}
      subject={{ type: 'routing_policy', id: policy.id }}
      action={text.policies.deleteAction}
      busy={remove.busy}
      error={remove.error}
      onConfirm={() => remove.run()}
    />
  )
}
