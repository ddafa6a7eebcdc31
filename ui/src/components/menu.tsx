// A button that opens a menu of actions.

import type { ReactNode } from 'react'
import { Button as AriaButton, Menu as AriaMenu, MenuItem, MenuTrigger, Popover } from 'react-aria-components'
import { useCaller } from '@/session/caller'
import { mayDo, type Role } from '@/session/roles'
import { useText } from '@/text'
import { classOf } from './button'
import { Icon } from './icons'

export interface Action {
  id: string
  label: string
  run: () => void
  needs?: Role
  disabled?: boolean
}

interface Props {
  label: string
  actions: Action[]
  /** What the button shows; three dots if not given. */
  button?: ReactNode
  small?: boolean
}

/** The actions on one thing. */
export function Actions({ label, actions, button, small }: Props) {
  const text = useText()
  const { role } = useCaller()
  const forbidden = (action: Action) => action.needs !== undefined && !mayDo(role, action.needs)
  return (
    <MenuTrigger>
      {button ? (
        <AriaButton className={classOf('plain', small ? 'small' : undefined)}>{button}</AriaButton>
      ) : (
        <AriaButton className="icobtn icobtn--s" aria-label={label}>
          <Icon name="more" />
        </AriaButton>
      )}
      <Popover className="popover" placement="bottom end">
        <AriaMenu
          className="menu"
          aria-label={label}
          disabledKeys={actions
            .filter((each) => each.disabled === true || forbidden(each))
            .map((each) => each.id)}
          onAction={(key) => actions.find((each) => each.id === key)?.run()}
        >
          {actions.map((action) => (
            <MenuItem key={action.id} id={action.id}>
              {action.label}
              {forbidden(action) ? (
                <span className="dim sm"> {text.common.needsRole(action.needs ?? '')}</span>
              ) : null}
            </MenuItem>
          ))}
        </AriaMenu>
      </Popover>
    </MenuTrigger>
  )
}
