// A link that looks like a button: it goes to a page, so it can be opened in a tab of its own.

import type { ReactNode } from 'react'
import { useCaller } from '@/session/caller'
import { Link } from '@/session/link'
import { mayDo, type Role } from '@/session/roles'
import { Button, classOf, type Kind, type Size } from './button'
import { Icon, type IconName } from './icons'

interface Props {
  to: string
  search?: Record<string, unknown>
  kind?: Kind
  size?: Size
  icon?: IconName
  /** Role that the page needs. Without it the control is a disabled button. */
  needs?: Role
  children: ReactNode
}

export function LinkButton({ to, search, kind = 'plain', size, icon, needs, children }: Props) {
  const { role } = useCaller()
  if (needs !== undefined && !mayDo(role, needs))
    return (
      <Button kind={kind} size={size} icon={icon} needs={needs}>
        {children}
      </Button>
    )
  return (
    <Link className={classOf(kind, size)} to={to} search={search}>
      {icon ? <Icon name={icon} /> : null}
      {children}
    </Link>
  )
}
