// Buttons. One that the role does not allow stays visible and says what it needs.

import type { ComponentPropsWithoutRef, MouseEvent, ReactNode } from 'react'
import type { Action } from './action'
import { Icon, type IconName } from './icons'
import { useText } from '@/text'
import { useCaller } from '@/session/caller'
import { mayDo, type Role } from '@/session/roles'

export type Kind = 'primary' | 'plain' | 'ghost'
export type Size = 'small' | 'large'

export interface ButtonProps extends Omit<ComponentPropsWithoutRef<'button'>, 'type'> {
  kind?: Kind
  size?: Size
  icon?: IconName
  /** Role that the action needs. */
  needs?: Role
  submit?: boolean
  busy?: boolean
  /** What it does, if that is a change. */
  does?: Action
  children: ReactNode
}

const KIND: Record<Kind, string> = { primary: 'btn btn--pri', plain: 'btn', ghost: 'btn btn--ghost' }

export function classOf(kind: Kind, size: Size | undefined): string {
  const sized = size === 'small' ? ' btn--s' : size === 'large' ? ' btn--lg' : ''
  return `${KIND[kind]}${sized}`
}

export function Button({ kind = 'plain', size, icon, needs, submit, does, children, ...rest }: ButtonProps) {
  const text = useText()
  const { busy = does?.busy, onClick = does ? () => does.run() : undefined, ...attributes } = rest
  const { role } = useCaller()
  const forbidden = needs !== undefined && !mayDo(role, needs)
  // A busy button keeps the focus, which a disabled one loses.
  const wait = (event: MouseEvent<HTMLButtonElement>) => event.preventDefault()
  return (
    <button
      {...attributes}
      type={submit ? 'submit' : 'button'}
      className={`${classOf(kind, size)} ${rest.className ?? ''}`}
      disabled={rest.disabled === true || forbidden}
      aria-busy={busy}
      aria-disabled={busy === true ? true : undefined}
      onClick={busy === true ? wait : onClick}
      title={forbidden ? text.common.needsRole(needs) : rest.title}
    >
      {icon ? <Icon name={icon} /> : null}
      {children}
    </button>
  )
}

interface IconButtonProps extends Omit<ComponentPropsWithoutRef<'button'>, 'type' | 'children'> {
  icon: IconName
  label: string
  small?: boolean
  needs?: Role
}

/** A button with an icon only. Its label is read out and shown as a tooltip. */
export function IconButton({ icon, label, small, needs, ...rest }: IconButtonProps) {
  const text = useText()
  const { role } = useCaller()
  const forbidden = needs !== undefined && !mayDo(role, needs)
  return (
    <button
      {...rest}
      type="button"
      className={small ? 'icobtn icobtn--s' : 'icobtn'}
      aria-label={label}
      title={forbidden ? text.common.needsRole(needs) : label}
      disabled={rest.disabled === true || forbidden}
    >
      <Icon name={icon} />
    </button>
  )
}
