// One chain.

import { useParams } from '@tanstack/react-router'
import { call, client, type Schemas } from '@/api/client'
import { get, useGet } from '@/api/query'
import { useTitle } from '@/session/crumb'
import { useGo } from '@/session/link'
import { useEdit } from '@/components/edit'
import { Check, TextField } from '@/components/fields'
import { EditForm } from '@/components/form'
import { ObjectPage } from '@/components/object-page'
import { Failure, Skeleton } from '@/components/section'
import { useText } from '@/text'
import { Back } from './back'
import { HopEditor } from './hop-editor'
import { ChainState } from './profiles'
import { policies as entry } from './entry'

type Chain = Schemas['Chain']
type Draft = ReturnType<typeof inputOf>

function inputOf({ name, hops, enabled }: Chain) {
  return { name, hops, enabled }
}

const EMPTY: Draft = { name: '', hops: [], enabled: true }
/** Most hops of a chain. */
const MOST = 4

export default function ChainPage() {
  const text = useText()
  const { id } = useParams({ strict: false }) as { id: string }
  const isNew = id === 'new'
  const query = useGet('/chains/{id}', { path: { id } }, { enabled: !isNew })
  const chain = query.data?.data
  useTitle(isNew ? text.policies.createChain : chain?.name)
  if (isNew) return <ChainForm key="new" chain={null} etag={null} />
  if (!chain) return query.error ? <Failure error={query.error} /> : <Skeleton lines={6} />
  return <ChainForm key={chain.id} chain={chain} etag={query.data?.etag ?? null} />
}

function ChainForm({ chain, etag }: { chain: Chain | null; etag: string | null }) {
  const text = useText()
  const go = useGo()
  const edit = useEdit<Draft, Chain>({
    key: `chain.${chain?.id ?? 'new'}`,
    version: { value: chain ? inputOf(chain) : EMPTY, etag },
    save: (body, tag) =>
      chain
        ? call(
            client.PUT('/chains/{id}', {
              params: { path: { id: chain.id }, header: { 'If-Match': tag ?? '' } },
              body,
            }),
          )
        : call(client.POST('/chains', { body })),
    read: async () => {
      const now = await get('/chains/{id}', { path: { id: chain?.id ?? '' } })
      return { value: inputOf(now.data), etag: now.etag }
    },
    onSaved: (saved) => {
      if (!chain) go(`/policies/chains/${saved.id}`)
    },
  })
  const { value, set } = edit.draft
  const errorOf = edit.of
  return (
    <ObjectPage
      entry={entry}
      question={text.policies.profileQuestion}
      answer={chain?.name ?? text.policies.createChain}
      deletion={
        chain
          ? {
              name: chain.name,
              title: text.policies.deleteTitle(chain.name),
              consequence: text.policies.deleteChainMeans,
              subject: { type: 'chain', id: chain.id },
              action: text.policies.deleteChain,
              remove: () => call(client.DELETE('/chains/{id}', { params: { path: { id: chain.id } } })),
              back: '/policies/profiles',
              draft: `chain.${chain.id}`,
            }
          : null
      }
    >
      <EditForm
        edit={edit}
        isNew={!chain}
        buttons={<Back to="/policies/profiles">{text.policies.profiles}</Back>}
      >
        {chain ? <ChainState status={chain.status} /> : null}
        <TextField
          label={text.common.name}
          value={value.name}
          error={errorOf('name')}
          autoComplete="off"
          onChange={(name) => set('name', name)}
        />
        <h3>{text.policies.columns.hops}</h3>
        <p className="dim">{text.policies.chainsHint}</p>
        <HopEditor hops={value.hops} errorOf={errorOf} most={MOST} onChange={(hops) => set('hops', hops)} />
        <Check label={text.common.enabled} checked={value.enabled} onChange={(on) => set('enabled', on)} />
      </EditForm>
    </ObjectPage>
  )
}
