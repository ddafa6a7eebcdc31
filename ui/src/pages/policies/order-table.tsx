// The table of policies. A row moves by its grip, by its buttons, by Alt+Up and Alt+Down, or to a position; several
// selected ones move as a block.

import { Fragment, useRef, useState, type KeyboardEvent } from 'react'
import { Button } from '@/components/button'
import { useCaller } from '@/session/caller'
import { mayDo } from '@/session/roles'
import { useText } from '@/text'
import { useConflicts } from './data'
import { useDrag } from './drag'
import type { Pending, Policy } from './model'
import { MoveDialog } from './move-dialog'
import { OrderRow } from './order-row'
import { moved, nudged } from './reorder'
import { useOrder } from './use-order'

interface Props {
  all: Policy[]
  /** Ids of the rows that the filter leaves. */
  visible: Set<string>
  pending: Pending[]
  selecting: boolean
}

export function OrderTable({ all, visible, pending, selecting }: Props) {
  const text = useText()
  const { role } = useCaller()
  const body = useRef<HTMLTableSectionElement>(null)
  const [picked, setPicked] = useState<string[]>([])
  const [moving, setMoving] = useState<string[] | null>(null)
  const { shown, saving, save } = useOrder(all)
  const conflicts = useConflicts().data?.data ?? []
  const order = shown.map((policy) => policy.id)
  const rows = shown.filter((policy) => visible.has(policy.id))
  const selected = selecting ? picked.filter((id) => order.includes(id)) : []
  const blockOf = (id: string) => (selected.includes(id) ? selected : [id])
  const nameOf = (block: string[]) =>
    shown
      .filter((policy) => block.includes(policy.id))
      .map((policy) => policy.name)
      .join(', ')
  const moveTo = (block: string[], next: string[]) => void save(next, block, nameOf(block))
  const nudge = (id: string, by: -1 | 1) => {
    const block = blockOf(id)
    moveTo(block, nudged(order, block, by))
  }
  const { drag, grip } = useDrag(body, (id, at) => {
    const before = rows[at]
    const last = rows[rows.length - 1]
    const end = last ? (order[order.indexOf(last.id) + 1] ?? null) : null
    const block = blockOf(id)
    moveTo(block, moved(order, block, before ? before.id : end))
  })
  const allowed = mayDo(role, 'operator') && !saving
  const press = (id: string) => (event: KeyboardEvent) => {
    if (!event.altKey || (event.key !== 'ArrowUp' && event.key !== 'ArrowDown')) return
    event.preventDefault()
    if (allowed) nudge(id, event.key === 'ArrowUp' ? -1 : 1)
  }
  const line = (
    <tr className="drop" aria-hidden="true">
      <td colSpan={7} />
    </tr>
  )
  return (
    <>
      {selecting ? (
        <div className="btns" role="group" aria-label={text.policies.selected(selected.length)}>
          <span className="mid">{text.policies.selected(selected.length)}</span>
          {(['blockUp', 'blockDown'] as const).map((label) => (
            <Button
              key={label}
              size="small"
              needs="operator"
              icon={label === 'blockUp' ? 'up' : 'down'}
              disabled={selected.length === 0 || saving}
              onClick={() => moveTo(selected, nudged(order, selected, label === 'blockUp' ? -1 : 1))}
            >
              {text.policies[label]}
            </Button>
          ))}
          <Button
            size="small"
            needs="operator"
            disabled={selected.length === 0 || saving}
            onClick={() => setMoving(selected)}
          >
            {text.policies.moveTo}
          </Button>
        </div>
      ) : null}
      <table className="tbl tbl--card tbl--menu policies" aria-label={text.policies.order} aria-busy={saving}>
        <thead>
          <tr>
            <th scope="col">{text.policies.columns.priority}</th>
            <th scope="col">{text.policies.columns.source}</th>
            <th scope="col">{text.policies.columns.hops}</th>
            <th scope="col">{text.policies.columns.fail}</th>
            <th scope="col">{text.policies.columns.now}</th>
            <th scope="col" className="num">
              {text.policies.columns.carried}
            </th>
            <th scope="col">
              <span className="sr">{text.common.actions}</span>
            </th>
          </tr>
        </thead>
        <tbody ref={body}>
          {rows.map((policy, at) => (
            <Fragment key={policy.id}>
              {drag?.at === at ? line : null}
              <OrderRow
                policy={policy}
                pending={pending.find((each) => each.id === policy.id)}
                conflicts={conflicts.filter((each) => each.policies[0] === policy.id)}
                lifted={drag !== null && blockOf(drag.id).includes(policy.id)}
                first={order[0] === policy.id}
                last={order[order.length - 1] === policy.id}
                movable={allowed}
                selected={selecting ? selected.includes(policy.id) : undefined}
                onSelect={(on) =>
                  setPicked(on ? [...picked, policy.id] : picked.filter((id) => id !== policy.id))
                }
                grip={grip(policy.id)}
                onKeyDown={press(policy.id)}
                onNudge={(by) => nudge(policy.id, by)}
                onMove={() => setMoving(blockOf(policy.id))}
                onTop={() => moveTo(blockOf(policy.id), moved(order, blockOf(policy.id), order[0] ?? null))}
                onEnd={() => moveTo(blockOf(policy.id), moved(order, blockOf(policy.id), null))}
              />
            </Fragment>
          ))}
          {drag?.at === rows.length ? line : null}
        </tbody>
      </table>
      {moving ? (
        <MoveDialog
          all={shown}
          block={moving}
          name={nameOf(moving)}
          onClose={() => setMoving(null)}
          onMove={(next) => {
            moveTo(moving, next)
            setMoving(null)
          }}
        />
      ) : null}
    </>
  )
}
