// One account: create, change, delete.

import { useState } from 'react'
import { useParams } from '@tanstack/react-router'
import { ApiError, call, client, type Schemas } from '@/api/client'
import { useChange, useGet } from '@/api/query'
import { useTitle } from '@/app/crumb'
import { Link, useGo } from '@/app/link'
import { say, sayError } from '@/app/toasts'
import { Button } from '@/components/button'
import { Confirm } from '@/components/confirm'
import { merge, useDraft, type Clash } from '@/components/draft'
import { Check, ErrorSummary, Select, TextField } from '@/components/fields'
import { MergeDialog } from '@/components/merge-dialog'
import { PasswordField } from '@/components/password-field'
import { Failure, Loaded, Section } from '@/components/section'
import { useText } from '@/text'

type User = Schemas['UserView']
type Form = { username: string; role: Schemas['RoleInput']; enabled: boolean }

const EMPTY: Form = { username: '', role: 'operator', enabled: true }

function formOf({ username, role, enabled }: User): Form {
  return { username, role, enabled }
}

export default function UserPage() {
  const { id } = useParams({ strict: false }) as { id: string }
  return id === 'new' ? <Editor /> : <Existing id={id} />
}

function Existing({ id }: { id: string }) {
  const read = useGet('/auth/users/{id}', { path: { id } }, { every: false })
  return (
    <Loaded query={read} lines={6}>
      {(user) => <Editor key={id} user={user} etag={read.data?.etag ?? null} />}
    </Loaded>
  )
}

function Editor({ user, etag = null }: { user?: User; etag?: string | null }) {
  const text = useText()
  const t = text.system.accounts
  const go = useGo()
  const [base, setBase] = useState({ form: user ? formOf(user) : EMPTY, etag })
  const draft = useDraft(`user.${user?.id ?? 'new'}`, base.form)
  // A password is never kept.
  const [password, setPassword] = useState('')
  const [clashes, setClashes] = useState<{ list: Clash[]; merged: Form; theirs: Form; etag: string | null }>()
  const [deleting, setDeleting] = useState(false)
  useTitle(user?.username ?? t.newUser)
  const save = useChange(({ form, match }: { form: Form; match: string | null }) => {
    const body = { ...form, ...(password ? { password } : {}) }
    return user
      ? call(
          client.PUT('/auth/users/{id}', {
            params: { path: { id: user.id }, header: match ? { 'If-Match': match } : {} },
            body,
          }),
        )
      : call(client.POST('/auth/users', { body }))
  })
  const remove = useChange(() =>
    call(client.DELETE('/auth/users/{id}', { params: { path: { id: user?.id ?? '' } } })),
  )
  const reread = async () => {
    try {
      const now = await call(client.GET('/auth/users/{id}', { params: { path: { id: user?.id ?? '' } } }))
      const theirs = formOf(now.data)
      const { merged, clashes: list } = merge(base.form, draft.value, theirs)
      setClashes({ list, merged, theirs, etag: now.etag })
    } catch (error) {
      sayError(error as Error)
    }
  }
  const submit = (form: Form, match: string | null) =>
    save.mutate(
      { form, match },
      {
        onSuccess: ({ warnings }) => {
          draft.discard()
          say(text.common.saved, warnings)
          go('/system')
        },
        onError: (error) => void (error instanceof ApiError && error.status === 412 ? reread() : undefined),
      },
    )
  const error = save.error instanceof ApiError && save.error.status !== 412 ? save.error : undefined
  return (
    <>
      <section className="answer">
        <p className="answer__q">
          <Link to="/system">{text.system.tabs.accounts}</Link>
        </p>
        <h1>{user?.username ?? t.newUser}</h1>
      </section>
      <Section title={user ? text.common.edit : text.common.create}>
        <form
          className="form"
          onSubmit={(event) => {
            event.preventDefault()
            submit(draft.value, base.etag)
          }}
        >
          {error ? <ErrorSummary error={error} /> : null}
          {save.error && !(save.error instanceof ApiError) ? <Failure error={save.error} /> : null}
          <TextField
            label={t.user}
            value={draft.value.username}
            error={error?.of('username')}
            onChange={(value) => draft.set('username', value)}
            autoComplete="off"
            required
          />
          <Select
            label={t.role}
            hint={t.rights[draft.value.role]}
            value={draft.value.role}
            error={error?.of('role')}
            options={(['admin', 'operator', 'viewer'] as const).map(
              (role) => [role as Form['role'], text.common.roles[role] ?? role] as const,
            )}
            onChange={(value) => draft.set('role', value)}
          />
          <PasswordField
            label={t.password}
            hint={user ? t.passwordKept : t.passwordHint}
            value={password}
            error={error?.of('password')}
            onChange={setPassword}
            fresh
            required={!user}
          />
          <Check
            label={t.enabled}
            checked={draft.value.enabled}
            onChange={(value) => draft.set('enabled', value)}
          />
          <div className="btns">
            <Button kind="primary" submit needs="admin" busy={save.isPending}>
              {user ? text.common.save : text.common.create}
            </Button>
            <Button
              kind="ghost"
              onClick={() => {
                draft.discard()
                go('/system')
              }}
            >
              {text.common.cancel}
            </Button>
            {user ? (
              <Button needs="admin" onClick={() => setDeleting(true)}>
                {text.common.delete}
              </Button>
            ) : null}
          </div>
        </form>
      </Section>
      {user ? (
        <Confirm
          open={deleting}
          onClose={() => setDeleting(false)}
          title={`${text.common.delete}: ${user.username}`}
          consequence={t.userConsequence}
          name={user.username}
          action={text.common.delete}
          busy={remove.isPending}
          error={remove.error}
          onConfirm={() =>
            remove.mutate(undefined, {
              onSuccess: () => {
                draft.discard()
                say(text.common.deleted(user.username))
                go('/system')
              },
            })
          }
        />
      ) : null}
      {clashes ? (
        <MergeDialog
          clashes={clashes.list}
          onClose={() => setClashes(undefined)}
          onMerge={(fields) => {
            const merged = { ...clashes.merged }
            for (const field of fields)
              Object.assign(merged, { [field]: clashes.theirs[field as keyof Form] })
            setClashes(undefined)
            setBase({ form: clashes.theirs, etag: clashes.etag })
            draft.replace(merged)
            submit(merged, clashes.etag)
          }}
        />
      ) : null}
    </>
  )
}
