// One chain.

import { useParams } from '@tanstack/react-router'
import { call, client, type Schemas } from '@/api/client'
import { get, useGet } from '@/api/query'
import { useTitle } from '@/app/crumb'
import { useGo } from '@/app/link'
import { Check, TextField } from '@/components/fields'
import { Failure, Skeleton } from '@/components/section'
import { useText } from '@/text'
import { HopEditor } from './hop-editor'
import { ObjectPage } from './object-page'
import { ChainState } from './profiles'
import { useEditor } from './use-editor'

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
  if (isNew) return <ChainForm key="new" chain={null} />
  if (!chain) return query.error ? <Failure error={query.error} /> : <Skeleton lines={6} />
  return <ChainForm key={chain.id} chain={chain} />
}

function ChainForm({ chain }: { chain: Chain | null }) {
  const text = useText()
  const go = useGo()
  const editor = useEditor<Draft, Chain>({
    key: `chain.${chain?.id ?? 'new'}`,
    existing: chain,
    start: chain ? inputOf(chain) : EMPTY,
    inputOf,
    write: (body, etag) =>
      chain
        ? call(
            client.PUT('/chains/{id}', {
              params: { path: { id: chain.id }, header: { 'If-Match': etag ?? '' } },
              body,
            }),
          )
        : call(client.POST('/chains', { body })),
    read: (id) => get('/chains/{id}', { path: { id } }),
    said: () => text.common.saved,
    onSaved: (saved) => {
      if (!chain) go(`/policies/chains/${saved.id}`)
    },
  })
  const { value, set } = editor.draft
  const errorOf = (path: string) => editor.problem?.of(path)
  return (
    <ObjectPage
      question={text.policies.profileQuestion}
      title={chain?.name ?? text.policies.createChain}
      editor={editor}
      existing={chain}
      back="/policies/profiles"
      backLabel={text.policies.profiles}
      deleting={{
        type: 'chain',
        title: text.policies.deleteTitle(chain?.name ?? ''),
        means: text.policies.deleteChainMeans,
        action: text.policies.deleteChain,
        remove: () => call(client.DELETE('/chains/{id}', { params: { path: { id: chain?.id ?? '' } } })),
      }}
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
    </ObjectPage>
  )
}
