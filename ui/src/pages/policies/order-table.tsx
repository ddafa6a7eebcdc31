// The table of policies. A row moves by its grip, by its buttons, by Alt+Up and Alt+Down, or to a position; several
// selected ones move as a block.

import { Fragment, useRef, useState, type KeyboardEvent, type ReactNode, type RefObject } from 'react'
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
  const body = useRef<HTMLTableSectionElement>(null)
  const [moving, setMoving] = useState<string[] | null>(null)
  const conflicts = useConflicts().data?.data ?? []
  const moves = useMoves(all, selecting)
  const { shown, order, selected, blockOf, nameOf, moveTo, allowed } = moves
  const rows = shown.filter((policy) => visible.has(policy.id))
  const { drag, grip } = useDrag(body, (id, at) => {
    const before = rows[at]
    const last = rows[rows.length - 1]
    const end = last ? (order[order.indexOf(last.id) + 1] ?? null) : null
    const block = blockOf(id)
    moveTo(block, moved(order, block, before ? before.id : end))
  })
  const line = (
    <tr className="drop" aria-hidden="true">
      <td colSpan={7} />
    </tr>
  )
  return (
    <>
      {selecting ? <BlockButtons moves={moves} onMove={() => setMoving(selected)} /> : null}
      <Frame body={body} saving={moves.saving}>
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
              onSelect={(on) => moves.select(policy.id, on)}
              grip={grip(policy.id)}
              onKeyDown={moves.press(policy.id)}
              onNudge={(by) => moves.nudge(policy.id, by)}
              onMove={() => setMoving(blockOf(policy.id))}
              onTop={() => moveTo(blockOf(policy.id), moved(order, blockOf(policy.id), order[0] ?? null))}
              onEnd={() => moveTo(blockOf(policy.id), moved(order, blockOf(policy.id), null))}
            />
          </Fragment>
        ))}
        {drag?.at === rows.length ? line : null}
      </Frame>
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

type Moves = ReturnType<typeof useMoves>

/** The order of the policies, those that are selected, and what moves them. */
function useMoves(all: Policy[], selecting: boolean) {
  const { role } = useCaller()
  const [picked, setPicked] = useState<string[]>([])
  const { shown, saving, save } = useOrder(all)
  const order = shown.map((policy) => policy.id)
  const selected = selecting ? picked.filter((id) => order.includes(id)) : []
  const blockOf = (id: string) => (selected.includes(id) ? selected : [id])
  const nameOf = (block: string[]) =>
    shown
      .filter((policy) => block.includes(policy.id))
      .map((policy) => policy.name)
      .join(', ')
  const moveTo = (block: string[], next: string[]) => void save(next, block, nameOf(block))
  const nudgeBlock = (block: string[], by: -1 | 1) => moveTo(block, nudged(order, block, by))
  const nudge = (id: string, by: -1 | 1) => nudgeBlock(blockOf(id), by)
  const allowed = mayDo(role, 'operator') && !saving
  const press = (id: string) => (event: KeyboardEvent) => {
    if (!event.altKey || (event.key !== 'ArrowUp' && event.key !== 'ArrowDown')) return
    event.preventDefault()
    if (allowed) nudge(id, event.key === 'ArrowUp' ? -1 : 1)
  }
  const select = (id: string, on: boolean) =>
    setPicked(on ? [...picked, id] : picked.filter((each) => each !== id))
  return {
    shown,
    saving,
    order,
    selected,
    blockOf,
    nameOf,
    moveTo,
    nudgeBlock,
    nudge,
    allowed,
    press,
    select,
  }
}

/** What moves the selected policies. */
function BlockButtons({ moves, onMove }: { moves: Moves; onMove: () => void }) {
  const text = useText()
  const { selected, saving, nudgeBlock } = moves
  const disabled = selected.length === 0 || saving
  return (
    <div className="btns" role="group" aria-label={text.policies.selected(selected.length)}>
      <span className="mid">{text.policies.selected(selected.length)}</span>
      {(['blockUp', 'blockDown'] as const).map((label) => (
        <Button
          key={label}
          size="small"
          needs="operator"
          icon={label === 'blockUp' ? 'up' : 'down'}
          disabled={disabled}
          onClick={() => nudgeBlock(selected, label === 'blockUp' ? -1 : 1)}
        >
          {text.policies[label]}
        </Button>
      ))}
      <Button size="small" needs="operator" disabled={disabled} onClick={onMove}>
        {text.policies.moveTo}
      </Button>
    </div>
  )
}

interface FrameProps {
  body: RefObject<HTMLTableSectionElement | null>
  saving: boolean
  children: ReactNode
}

function Frame({ body, saving, children }: FrameProps) {
  const text = useText()
  const { columns } = text.policies
  return (
    <table className="tbl tbl--card tbl--menu policies" aria-label={text.policies.order} aria-busy={saving}>
      <thead>
        <tr>
          {[columns.priority, columns.source, columns.hops, columns.fail, columns.now].map((column) => (
            <th key={column} scope="col">
              {column}
            </th>
          ))}
          <th scope="col" className="num">
            {columns.carried}
          </th>
          <th scope="col">
            <span className="sr">{text.common.actions}</span>
          </th>
        </tr>
      </thead>
      <tbody ref={body}>{children}</tbody>
    </table>
  )
}
