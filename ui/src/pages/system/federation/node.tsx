// One other gateway: whether it is trusted, and what is exchanged with it.

import { useState } from 'react'
import { call, client, type Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { useTitle } from '@/session/crumb'
import { ActionForm } from '@/components/action-form'
import { useFormAction } from '@/components/action'
import { answerOf } from '@/components/answer'
import { Button } from '@/components/button'
import { Confirm } from '@/components/confirm'
import type { Edit } from '@/components/edit'
import { Facts } from '@/components/facts'
import { TextField } from '@/components/fields'
import { FormFields } from '@/components/form-fields'
import { ObjectForm } from '@/components/object-form'
import { ObjectPage } from '@/components/object-page'
import { usePageId } from '@/components/page-id'
import { PickMany } from '@/components/picker'
import { deletionOf, useObject } from '@/components/resource'
import { Loaded, Section } from '@/components/section'
import { StateWord } from '@/components/state'
import { Age } from '@/components/time'
import { useText } from '@/text'
import { nodes, STATES, type Node, type NodeFields } from './nodes'

export default function NodePage() {
  const text = useText()
  const words = text.federation
  const query = useObject(nodes, usePageId(), { every: 5000 })
  const shown = query.data?.data
  useTitle(shown?.name)
  return (
    <ObjectPage
      question={shown ? words.nodeQuestion(shown.name) : words.question}
      answer={answerOf(query, text, ({ status }) => words.answers[status])}
      deletion={deletionOf(nodes, shown, {
        title: words.deleteTitle,
        consequence: words.deleteConsequence,
        needs: 'admin',
        back: '/system/federation',
      })}
    >
      <Loaded query={query} lines={8}>
        {(node) => (
          <>
            <Section title={words.trust} hint={words.trustHint}>
              <NodeFacts node={node} />
              <Decision key={node.public_key} node={node} />
            </Section>
            <Section title={words.settings}>
              <ObjectForm
                key={node.id}
                resource={nodes}
                needs="admin"
                stored={{ data: node, etag: query.data?.etag ?? null }}
              >
                {(edit) => <NodeForm edit={edit} />}
              </ObjectForm>
            </Section>
          </>
        )}
      </Loaded>
    </ObjectPage>
  )
}

function NodeFacts({ node }: { node: Node }) {
  const words = useText().federation
  const errors = node.errors?.join(' ')
  return (
    <Facts
      facts={[
        [
          words.columns.status,
          <StateWord key="status" state={STATES[node.status]}>
            {words.statuses[node.status]}
          </StateWord>,
        ],
        [words.words, node.fingerprint_words, 'mono'],
        [words.fingerprint, node.fingerprint, 'mono'],
        [words.seen, <Age key="seen" time={node.last_seen} />],
        [words.columns.synced, <Age key="synced" time={node.last_sync} />],
        [words.version, node.version],
        errors
          ? [
              words.errors,
              <span key="errors" lang="en">
                {errors}
              </span>,
            ]
          : null,
      ]}
    />
  )
}

/** Approves the key of a node by its words, or refuses it. */
function Decision({ node }: { node: Node }) {
  const words = useText().federation
  const [typed, setTyped] = useState('')
  const [revoking, setRevoking] = useState(false)
  const decide = useFormAction(
    (decision: Schemas['NodeDecisionInput']) => {
      const body = { decision, fingerprint_words: decision === 'approve' ? typed.trim() : '' }
      return call(client.POST('/nodes/{id}/approve', { params: { path: { id: node.id } }, body }))
    },
    ({ name, status }) => words.decided(name, words.statuses[status]),
  )
  const isTrusted = node.status === 'approved' || node.status === 'connected' || node.status === 'unreachable'
  if (isTrusted)
    return (
      <div className="btns">
        <Button needs="admin" onClick={() => setRevoking(true)}>
          {words.revoke}
        </Button>
        <Confirm
          open={revoking}
          onClose={() => setRevoking(false)}
          title={words.revokeTitle(node.name)}
          consequence={words.revokeConsequence}
          name={node.name}
          action={words.revoke}
          busy={decide.busy}
          error={decide.error}
          onConfirm={() => decide.run('revoke')}
        />
      </div>
    )
  if (node.public_key === null || node.status === 'revoked') return null
  return (
    <ActionForm
      of={decide}
      onSubmit={() => decide.run('approve')}
      word={words.approve}
      needs="admin"
      disabled={typed.trim() === ''}
      buttons={
        node.status === 'pending' ? (
          <Button needs="admin" onClick={() => decide.run('reject')}>
            {words.reject}
          </Button>
        ) : null
      }
    >
      <TextField
        label={words.typed}
        hint={words.typedHint}
        error={decide.of('fingerprint_words')}
        value={typed}
        onChange={setTyped}
        autoComplete="off"
        spellCheck={false}
      />
    </ActionForm>
  )
}

function NodeForm({ edit }: { edit: Edit<NodeFields> }) {
  const words = useText().federation
  const roles = useGet('/federation-roles', {}, { every: 60_000 }).data?.data ?? []
  const { draft, problems } = edit
  const all = Object.entries(words.kinds).map(([id, name]) => ({ id, name }))
  const kinds = (field: 'sync_resources' | 'allowed_receive_resources') => (
    <PickMany
      label={words.fields[field][0]}
      hint={words.fields[field][1]}
      all={all}
      chosen={draft.value[field]}
      error={edit.of(field)}
      onChange={(chosen) => draft.set(field, chosen)}
    />
  )
  return (
    <>
      <FormFields
        draft={draft}
        texts={words.fields}
        error={problems}
        fields={[
          { field: 'name', required: true },
          { field: 'url', required: true, input: { type: 'url' } },
          { field: 'sync_policy', kind: 'choice', options: Object.entries(words.policies) },
          { field: 'role', kind: 'choice', options: roles.map(({ name }) => [name, name] as const) },
          { field: 'interface_map', kind: 'lines', rows: 2 },
          { field: 'public_key', nullable: true },
          { field: 'ca_certificate', kind: 'area', rows: 3 },
        ]}
      />
      <div className="form form--2">
        {kinds('sync_resources')}
        {kinds('allowed_receive_resources')}
      </div>
    </>
  )
}
