// The account of the caller: role, sign in, sign out.

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
import { Button } from '@/components/button'
import { useText } from '@/text'
import { useCaller } from '@/session/caller'
import { useGo } from '@/session/link'
import { SignInDialog } from '@/components/sign-in'
import { sayError } from '@/session/toasts'

/** The caller, and what they can do about their session. */
function useAccount() {
  const text = useText()
  const queries = useQueryClient()
  const { status } = useCaller()
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
  return {
    status,
    name: status?.user ?? (status?.enabled === false ? text.shell.signInOff : text.shell.guest),
    /** `null` while sign-in is off. */
    session: status?.enabled ? (status.auth === 'session' ? 'signed-in' : 'signed-out') : null,
    signOut,
  }
}

/** The caller and the session, for the menu of small screens. */
export function AccountButtons({ onDone }: { onDone: () => void }) {
  const text = useText()
  const { status, name, session, signOut } = useAccount()
  const [signIn, setSignIn] = useState(false)
  const leave = async () => {
    await signOut()
    onDone()
  }
  return (
    <div className="btns">
      <span>
        {name}
        {status?.role ? <span className="dim"> {text.common.roles[status.role]}</span> : null}
      </span>
      {session === 'signed-in' ? (
        <Button size="small" onClick={() => void leave()}>
          {text.shell.signOut}
        </Button>
      ) : session === 'signed-out' ? (
        <Button size="small" onClick={() => setSignIn(true)}>
          {text.shell.signIn}
        </Button>
      ) : null}
      <SignInDialog open={signIn} firm={false} onClose={() => setSignIn(false)} />
    </div>
  )
}

export function Account() {
  const text = useText()
  const go = useGo()
  const { status, name, session, signOut } = useAccount()
  const [signIn, setSignIn] = useState(false)
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
            {session ? <Separator /> : null}
            {session === 'signed-in' ? <MenuItem id="out">{text.shell.signOut}</MenuItem> : null}
            {session === 'signed-out' ? <MenuItem id="in">{text.shell.signIn}</MenuItem> : null}
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
