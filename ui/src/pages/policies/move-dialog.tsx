import { useState } from 'react'
import { Dialog } from '@/components/dialog'
import { TextField } from '@/components/fields'
import { ActionForm } from '@/components/action-form'
import { useText } from '@/text'
import type { Policy } from './model'
import { moved, renumber } from './reorder'

interface Props {
  all: Policy[]
  block: string[]
  name: string
  onClose: () => void
  onMove: (order: string[]) => void
}

/** Asks for the position of a policy, or of a block, and says which priorities that changes. */
export function MoveDialog({ all, block, name, onClose, onMove }: Props) {
  const text = useText()
  const order = all.map((policy) => policy.id)
  const [typed, setTyped] = useState(String(order.indexOf(block[0] ?? '') + 1))
  const rest = order.filter((id) => !block.includes(id))
  const place = Math.min(Math.max(1, Math.round(Number(typed) || 1)), rest.length + 1)
  const next = moved(order, block, rest[place - 1] ?? null)
  const changes = renumber(all, next, block).map(
    ({ id, priority }) => `${all.find((policy) => policy.id === id)?.name ?? id} ${priority}`,
  )
  return (
    <Dialog open onClose={onClose} title={text.policies.moveToTitle(name)}>
      <ActionForm onSubmit={() => onMove(next)} word={text.policies.move} needs="operator" onCancel={onClose}>
        <TextField
          label={text.policies.position(rest.length + 1)}
          type="number"
          min={1}
          max={rest.length + 1}
          value={typed}
          onChange={setTyped}
          hint={text.policies.willBe(changes)}
        />
      </ActionForm>
    </Dialog>
  )
}
