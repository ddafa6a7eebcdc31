// The menu of the account: role, language, sign out.

import { useState } from 'react'
import {
  Menu,
  MenuItem,
  MenuTrigger,
  Popover,
  Button as AriaButton,
  Separator,
  Header,
  MenuSection,
} from 'react-aria-components'
import { useQueryClient } from '@tanstack/react-query'
import { call, client } from '@/api/client'
import { useText } from '@/text'
import { useCaller } from './caller'
import { useGo } from './link'
import { SignInDialog } from './sign-in'
import { sayError } from './toasts'

export function Account() {
  const text = useText()
  const go = useGo()
  const queries = useQueryClient()
  const { status } = useCaller()
  const [signIn, setSignIn] = useState(false)
  const name = status?.user ?? (status?.enabled === false ? text.shell.signInOff : text.shell.guest)
  const signOut = async () => {
    try {
      const sessions = await call(client.GET('/auth/tokens'))
      const own = sessions.data.find((each) => each.current)
      if (own) await call(client.DELETE('/auth/tokens/{id}', { params: { path: { id: own.id } } }))
    } catch (error) {
      sayError(error as Error)
    }
    await queries.resetQueries()
  }
  return (
    <>
      <MenuTrigger>
        <AriaButton className="icobtn" aria-label={text.shell.account(name, status?.role ?? null)}>
          <span className="avatar" aria-hidden="true" data-initials={initials(status?.user)} />
        </AriaButton>
        <Popover className="popover" placement="bottom end">
          <Menu
            className="menu"
            onAction={(key) => {
              if (key === 'out') void signOut()
              else if (key === 'in') setSignIn(true)
              else go('/system')
            }}
          >
            <MenuSection>
              <Header>
                {name}
                {status?.role ? <span className="dim"> {text.common.roles[status.role]}</span> : null}
              </Header>
              <MenuItem id="accounts">{text.shell.accounts}</MenuItem>
            </MenuSection>
            {status?.enabled ? <Separator /> : null}
            {status?.enabled && status.auth === 'session' ? (
              <MenuItem id="out">{text.shell.signOut}</MenuItem>
            ) : null}
            {status?.enabled && status.auth !== 'session' ? (
              <MenuItem id="in">{text.shell.signIn}</MenuItem>
            ) : null}
          </Menu>
        </Popover>
      </MenuTrigger>
      <SignInDialog open={signIn} firm={false} onClose={() => setSignIn(false)} />
    </>
  )
}

function initials(user: string | null | undefined): string {
  return (user ?? '?').slice(0, 2).toUpperCase()
}
