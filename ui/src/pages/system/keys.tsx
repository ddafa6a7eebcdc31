// API keys: created and shown once, revoked.

import { useState } from 'react'
import type { UseQueryResult } from '@tanstack/react-query'
import { call, client, type Answer, type Schemas } from '@/api/client'
import { Button } from '@/components/button'
import { Command } from '@/components/command'
import { Confirm } from '@/components/confirm'
import { Select, TextArea, TextField } from '@/components/fields'
import { useFirstField } from '@/components/first-field'
import { Empty, Loaded, Section } from '@/components/section'
import { StateWord } from '@/components/state'
import { Age, Clock } from '@/components/time'
import { Table } from '@/components/table'
import { TwoLines } from '@/components/two-lines'
import { useFormAction } from '@/components/action'
import { ActionForm } from '@/components/action-form'
import { wordsOf } from '@/components/form'
import { useText } from '@/text'

type Key = Schemas['KeyView']
type Role = Schemas['RoleInput']

export function Keys({ query }: { query: UseQueryResult<Answer<Key[]>> }) {
  const text = useText()
  const t = text.system.accounts
  const [adding, setAdding] = useState(false)
  const [made, setMade] = useState<Schemas['CreatedKey']>()
  const [revoking, setRevoking] = useState<Key>()
  const revoke = useFormAction(
    ({ id }: Key) => call(client.DELETE('/auth/keys/{id}', { params: { path: { id } } })),
    (_, { name }) => {
      setRevoking(undefined)
      return text.common.deleted(name)
    },
  )
  return (
    <Section
      title={t.apiKeys}
      hint={t.keysHint}
      actions={
        <Button icon="plus" needs="admin" aria-expanded={adding} onClick={() => setAdding(!adding)}>
          {t.addKey}
        </Button>
      }
    >
      {made ? <KeyShown made={made} onStored={() => setMade(undefined)} /> : null}
      {adding ? (
        <NewKey
          onClose={() => setAdding(false)}
          onMade={(key) => {
            setMade(key)
            setAdding(false)
          }}
        />
      ) : null}
      <Loaded query={query} empty={<Empty>{t.noKeys}</Empty>}>
        {(list) => <KeyTable keys={list} onRevoke={setRevoking} />}
      </Loaded>
      {revoking ? (
        <Confirm
          open
          onClose={() => setRevoking(undefined)}
          title={`${t.revoke}: ${revoking.name}`}
          consequence={t.keyConsequence}
          name={revoking.name}
          action={t.revoke}
          busy={revoke.busy}
          error={revoke.error}
          onConfirm={() => revoke.run(revoking)}
        />
      ) : null}
    </Section>
  )
}

/** The key itself, which is shown once. */
function KeyShown({ made, onStored }: { made: Schemas['CreatedKey']; onStored: () => void }) {
  const t = useText().system.accounts
  return (
    <div className="once" role="status">
      <p className="strong">{t.once}</p>
      <Command>{made.key}</Command>
      <div className="btns">
        <Button kind="primary" onClick={onStored}>
          {t.stored}
        </Button>
      </div>
    </div>
  )
}

function KeyTable({ keys, onRevoke }: { keys: Key[]; onRevoke: (key: Key) => void }) {
  const text = useText()
  const t = text.system.accounts
  return (
    <Table
      label={t.apiKeys}
      rows={keys}
      id={(key) => key.id}
      columns={[
        { head: t.keyName, bare: true, className: 'med', cell: (key) => key.name },
        { head: t.role, cell: (key) => text.common.roles[key.role] },
        { head: t.begins, cell: (key) => <code>{key.prefix}</code> },
        { head: t.networks, cell: (key) => (key.cidrs.length > 0 ? key.cidrs.join(', ') : t.anyNetwork) },
        {
          head: t.expires,
          cell: (key) => (
            <>
              {key.expired ? <StateWord state="idle">{t.expired}</StateWord> : null}
              {key.expired ? null : key.expires_at ? <Clock time={key.expires_at} /> : t.unlimited}
            </>
          ),
        },
        {
          head: t.createdBy,
          cell: (key) => <TwoLines second={<Age time={key.created_at} />}>{key.created_by}</TwoLines>,
        },
        {
          numeric: true,
          cell: (key) => (
            <Button size="small" needs="admin" onClick={() => onRevoke(key)}>
              {t.revoke}
            </Button>
          ),
        },
      ]}
    />
  )
}

const ROLES = ['admin', 'operator', 'viewer', 'diagnostics'] as const

const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString()

interface NewKeyProps {
  onClose: () => void
  onMade: (key: Schemas['CreatedKey']) => void
}

function NewKey({ onClose, onMade }: NewKeyProps) {
  const text = useText()
  const t = text.system.accounts
  const form = useFirstField()
  const [name, setName] = useState('')
  const [role, setRole] = useState<Role>('viewer')
  const [days, setDays] = useState('')
  const [cidrs, setCidrs] = useState('')
  const create = useFormAction(
    () =>
      call(
        client.POST('/auth/keys', {
          body: { name, role, expires_at: days ? inDays(Number(days)) : null, cidrs: wordsOf(cidrs) },
        }),
      ),
    (data) => onMade(data),
  )
  return (
    <ActionForm
      formRef={form}
      of={create}
      onSubmit={() => create.run()}
      word={t.createKey}
      needs="admin"
      onCancel={onClose}
    >
      <TextField label={t.keyName} value={name} error={create.of('name')} onChange={setName} required />
      <Select<Role>
        label={t.role}
        hint={t.rights[role]}
        value={role}
        error={create.of('role')}
        options={ROLES.map((each) => [each, text.common.roles[each]] as const)}
        onChange={setRole}
      />
      <TextField
        label={t.days}
        hint={t.daysHint}
        type="number"
        min={1}
        max={36_500}
        value={days}
        error={create.of('expires_at')}
        onChange={setDays}
      />
      <TextArea
        label={t.cidrs}
        hint={t.cidrsHint}
        rows={2}
        value={cidrs}
        error={create.of('cidrs')}
        onChange={setCidrs}
      />
    </ActionForm>
  )
}
