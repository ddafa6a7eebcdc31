// The frame around all pages: navigation, top bar, pending changes, dialogs.

import { Outlet } from '@tanstack/react-router'
import { useEffect } from 'react'
import { useQueryClient } from '@tanstack/react-query'
import { live } from '@/api/live'
import { Sprite } from '@/components/icons'
import { Entries } from '@/components/entries'
import { entries } from '@/pages'
import { useText } from '@/text'
import { Announcer } from './announcer'
import { Banners } from './banners'
import { BottomBar, SideBar } from './navigation'
import { HeadingFocus, PageTitle } from './page-change'
import { PendingBar } from './pending-bar'
import { Shortcuts } from './shortcuts'
import { Silence } from './silence'
import { SignInAgain } from '@/components/sign-in'
import { Toasts } from '@/components/toasts'
import { TopBar } from './top-bar'

export function Shell() {
  const text = useText()
  const queries = useQueryClient()
  useEffect(() => live.follow(queries), [queries])
  return (
    <>
      <Sprite />
      <a className="skip" href="#main">
        {text.shell.skip}
      </a>
      <div className="app">
        <SideBar />
        <div className="main">
          <TopBar />
          <Banners />
          <Silence />
          <main className="page" id="main" tabIndex={-1}>
            <Entries value={entries}>
              <Outlet />
            </Entries>
          </main>
          <div className="foot">
            <Toasts />
            <PendingBar />
          </div>
        </div>
      </div>
      <BottomBar />
      <Announcer />
      <PageTitle />
      <HeadingFocus />
      <Shortcuts />
      <SignInAgain />
    </>
  )
}
