// One policy in the table.

import { useState, type KeyboardEvent, type PointerEvent } from 'react'
import { call, client, type Schemas } from '@/api/client'
import { Link, useGo } from '@/session/link'
import { IconButton } from '@/components/button'
import { Icon } from '@/components/icons'
import { Actions } from '@/components/menu'
import { Glyph, Tag } from '@/components/state'
import { TwoLines } from '@/components/two-lines'
import { useAction } from '@/components/action'
import { useText } from '@/text'
import { formatBytes, formatTime } from '@/text/format'
import { sourceWords, useNames } from './data'
import { DeletePolicy } from './delete-policy'
import { PolicyHops } from './hops'
import type { Pending, Policy } from './model'
import { Now } from './now'

interface Props {
  policy: Policy
  pending: Pending | undefined
  conflicts: Schemas['NamedConflict'][]
  lifted: boolean
  first: boolean
  last: boolean
  movable: boolean
  /** Undefined while nothing can be selected. */
  selected: boolean | undefined
  onSelect: (on: boolean) => void
  grip: Record<string, (event: PointerEvent) => void>
  onKeyDown: (event: KeyboardEvent) => void
  onNudge: (by: -1 | 1) => void
  onMove: () => void
  onTop: () => void
  onEnd: () => void
}

export function OrderRow(props: Props) {
  const { policy, pending, conflicts, lifted, selected } = props
  const text = useText()
  const go = useGo()
  const names = useNames()
  const hatched = pending?.kind === 'new'
  const { name } = policy
  const open = (event: KeyboardEvent) => {
    if (event.key === 'Enter' && event.target === event.currentTarget) go(`/policies/${policy.id}`)
    else props.onKeyDown(event)
  }
  return (
    <tr
      data-row={policy.id}
      tabIndex={0}
      className={lifted ? 'is-lift' : hatched ? 'is-new' : selected ? 'is-sel' : undefined}
      onKeyDown={open}
    >
      <td>
        <Handles {...props} />
      </td>
      <td>
        <TwoLines
          second={
            <>
              {sourceWords(policy, names, text)}
              {policy.ended_at
                ? `, ${text.policies.ended}`
                : policy.expires_at
                  ? `, ${text.policies.expiresAt(formatTime(policy.expires_at))}`
                  : ''}
            </>
          }
        >
          <span className="named">
            <Link className="med" to={`/policies/${policy.id}`}>
              {name}
            </Link>
            <Badges pending={pending} conflicts={conflicts} />
          </span>
        </TwoLines>
      </td>
      <td data-l={text.policies.columns.hops}>
        <PolicyHops policy={policy} />
      </td>
      <td data-l={text.policies.columns.failShort}>
        <FailWord policy={policy} pending={pending} />
      </td>
      <td data-l={text.policies.columns.now}>
        <Now policy={policy} />
      </td>
      <td className="num dim" data-l={text.policies.columns.carried}>
        {policy.hits?.bytes ? formatBytes(policy.hits.bytes) : '-'}
      </td>
      <td className="num">
        <RowActions {...props} />
      </td>
    </tr>
  )
}

/** What moves the policy, and its priority. */
function Handles({ policy, selected, movable, first, last, grip, onSelect, onNudge }: Props) {
  const text = useText()
  const { name } = policy
  return (
    <span className="order">
      {selected === undefined ? null : (
        <input
          type="checkbox"
          className="pick"
          aria-label={text.policies.selectOne(name)}
          checked={selected}
          onChange={(event) => onSelect(event.target.checked)}
        />
      )}
      <button
        type="button"
        className="icobtn icobtn--s grip"
        aria-label={text.policies.drag(name)}
        disabled={!movable}
        tabIndex={-1}
        {...grip}
      >
        <Icon name="grip" />
      </button>
      <IconButton
        small
        needs="operator"
        icon="up"
        label={text.policies.moveUp(name)}
        disabled={first || !movable}
        onClick={() => onNudge(-1)}
      />
      <IconButton
        small
        needs="operator"
        icon="down"
        label={text.policies.moveDown(name)}
        disabled={last || !movable}
        onClick={() => onNudge(1)}
      />
      <span className="p">{policy.priority}</span>
    </span>
  )
}

function RowActions({ policy, first, last, onMove, onTop, onEnd }: Props) {
  const text = useText()
  const go = useGo()
  const [deleting, setDeleting] = useState(false)
  const { name } = policy
  const toggle = useAction(
    () => call(client.POST('/routing/policies/{id}/toggle', { params: { path: { id: policy.id } } })),
    (data) => (data.enabled ? text.policies.enabledSaved(name) : text.policies.disabledSaved(name)),
  )
  const switchOver = () => toggle.run()
  const needs = 'operator'
  return (
    <>
      <Actions
        label={text.policies.moreFor(name)}
        actions={[
          { id: 'edit', label: text.common.edit, run: () => go(`/policies/${policy.id}`) },
          { id: 'move', label: text.policies.moveTo, needs, run: onMove },
          { id: 'top', label: text.policies.toTop, needs, disabled: first, run: onTop },
          { id: 'end', label: text.policies.toEnd, needs, disabled: last, run: onEnd },
          {
            id: 'toggle',
            label: policy.enabled ? text.policies.disable : text.policies.enable,
            needs,
            run: switchOver,
          },
          {
            id: 'copy',
            label: text.policies.duplicate,
            needs,
            run: () => go('/policies/new', { from: policy.id }),
          },
          { id: 'delete', label: text.common.delete, needs, run: () => setDeleting(true) },
        ]}
      />
      <DeletePolicy policy={policy} open={deleting} onClose={() => setDeleting(false)} />
    </>
  )
}

function Badges({ pending, conflicts }: Pick<Props, 'pending' | 'conflicts'>) {
  const text = useText()
  return (
    <>
      {pending?.kind === 'edited' ? <Tag kind="pending">{text.policies.edited}</Tag> : null}
      {pending?.kind === 'off' ? <Tag kind="pending">{text.policies.off}</Tag> : null}
      {conflicts.map((conflict) => {
        const words = text.policies.conflictKinds[conflict.kind]
        const others = conflict.names.slice(1).join(', ')
        return (
          <span
            key={`${conflict.kind} ${conflict.message}`}
            className="tag tag--direct"
            title={conflict.message}
          >
            <Glyph state="degraded" />
            {words ? words(others) : conflict.kind}
          </span>
        )
      })}
    </>
  )
}

/** The failure policy that would be active, and the active one if it is another. */
function FailWord({ policy, pending }: { policy: Policy; pending: Pending | undefined }) {
  const text = useText()
  const own = (policy.effective ?? policy).fail_policy ?? 'fail-closed'
  const active = pending?.applied?.fail_policy
  return (
    <TwoLines
      second={active && active !== own ? text.policies.activeNow(text.policies.failWords[active]) : null}
    >
      <span title={text.policies.failMeans[own]}>{text.policies.failWords[own]}</span>
    </TwoLines>
  )
}
