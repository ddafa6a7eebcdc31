// Accounts, API keys and sessions.

import { useState } from 'react'
import { call, client, type Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { useCaller } from '@/session/caller'
import { Link } from '@/session/link'
import { Page } from '@/components/answer'
import { Button } from '@/components/button'
import { LinkButton } from '@/components/link-button'
import { PasswordField } from '@/components/password-field'
import { LoadedSection, Empty, Section } from '@/components/section'
import { StateWord, Tag } from '@/components/state'
import { Age } from '@/components/time'
import { Table } from '@/components/table'
import { useAction, useFormAction } from '@/components/action'
import { ActionForm } from '@/components/action-form'
import { useText } from '@/text'
import { programOf } from './program'
import { Keys } from './keys'

export default function Accounts() {
  const text = useText()
  const t = text.system.accounts
  const { status } = useCaller()
  const users = useGet('/auth/users')
  const keys = useGet('/auth/keys')
  const sessions = useGet('/auth/tokens')
  return (
    <Page
      question={t.question}
      actions={
        <LinkButton kind="primary" icon="plus" needs="admin" to="/system/users/new">
          {t.addUser}
        </LinkButton>
      }
      answer={<Sentence users={users.data?.data} keys={keys.data?.data} />}
    >
      <LoadedSection
        title={t.users}
        query={users}
        empty={<Empty command="gatewayd user add --username anna --role admin">{t.noUsers}</Empty>}
      >
        {(list) => <Users users={list} />}
      </LoadedSection>
      {status?.auth === 'session' ? <ChangePassword /> : null}
      <Keys query={keys} />
      <LoadedSection
        title={t.sessions}
        hint={t.sessionsHint}
        query={sessions}
        empty={<Empty>{t.noSessions}</Empty>}
      >
        {(list) => <Sessions sessions={list} />}
      </LoadedSection>
    </Page>
  )
}

interface SentenceProps {
  users: Schemas['UserView'][] | undefined
  keys: Schemas['KeyView'][] | undefined
}

function Sentence({ users, keys }: SentenceProps) {
  const text = useText()
  const t = text.system.accounts
  const { status } = useCaller()
  if (!status || !users || !keys) return <>{text.common.loading}</>
  if (!status.enabled)
    return (
      <>
        {t.off} {t.offStored(users.length)}
      </>
    )
  const admins = users.filter((user) => user.role === 'admin').length
  return (
    <>
      {t.admins(admins)}, {t.others(users.length - admins)} {t.and} {t.keys(keys.length)}.
    </>
  )
}

function Users({ users }: { users: Schemas['UserView'][] }) {
  const text = useText()
  const t = text.system.accounts
  const { status } = useCaller()
  return (
    <Table
      label={t.users}
      rows={users}
      id={(user) => user.id}
      columns={[
        {
          head: t.user,
          bare: true,
          className: 'med',
          cell: (user) => (
            <>
              <Link to={`/system/users/${user.id}`}>{user.username}</Link>{' '}
              {status?.auth === 'session' && status.user === user.username ? <Tag>{t.you}</Tag> : null}
            </>
          ),
        },
        { head: t.role, cell: (user) => text.common.roles[user.role] },
        {
          head: t.state,
          cell: (user) =>
            user.enabled ? (
              <span className="st st--plain">{t.may}</span>
            ) : (
              <StateWord state="idle">{t.mayNot}</StateWord>
            ),
        },
        { head: t.lastLogin, cell: (user) => <Age time={user.last_login} /> },
      ]}
    />
  )
}

function ChangePassword() {
  const text = useText()
  const t = text.system.accounts
  const { status } = useCaller()
  const [current, setCurrent] = useState('')
  const [next, setNext] = useState('')
  const change = useFormAction(
    () =>
      call(
        client.POST('/auth/change-password', {
          body: { username: status?.user ?? null, current_password: current, new_password: next },
        }),
      ),
    () => {
      setCurrent('')
      setNext('')
      return t.changed
    },
  )
  return (
    <Section title={t.change}>
      <ActionForm of={change} onSubmit={() => change.run()} word={t.change} kind="plain">
        <PasswordField
          label={t.current}
          value={current}
          error={change.of('current_password')}
          onChange={setCurrent}
          required
        />
        <PasswordField
          label={t.next}
          hint={t.passwordHint}
          value={next}
          error={change.of('new_password')}
          onChange={setNext}
          fresh
          required
        />
      </ActionForm>
    </Section>
  )
}

function Sessions({ sessions }: { sessions: Schemas['SessionView'][] }) {
  const text = useText()
  const t = text.system.accounts
  const end = useAction(
    (id: string) => call(client.DELETE('/auth/tokens/{id}', { params: { path: { id } } })),
    () => t.ended,
  )
  return (
    <Table
      label={t.sessions}
      rows={sessions}
      id={(session) => session.id}
      columns={[
        {
          head: t.user,
          bare: true,
          className: 'med',
          cell: (session) => (
            <>
              {session.user} {session.current ? <Tag>{t.this}</Tag> : null}
            </>
          ),
        },
        { head: t.from, className: 'mono', cell: (session) => session.ip ?? '-' },
        {
          head: t.agent,
          cell: (session) => (
            <span title={session.user_agent ?? undefined}>
              {session.user_agent ? programOf(session.user_agent) : '-'}
            </span>
          ),
        },
        { head: t.since, cell: (session) => <Age time={session.created_at} /> },
        { head: t.seen, cell: (session) => <Age time={session.last_seen} /> },
        {
          numeric: true,
          cell: (session) => (
            <Button size="small" onClick={() => end.run(session.id)}>
              {t.end}
            </Button>
          ),
        },
      ]}
    />
  )
}
