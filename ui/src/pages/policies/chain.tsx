// One chain.

import type { Schemas } from '@/api/client'
import { useGo } from '@/session/link'
import { EditForm } from '@/components/form'
import { FieldList } from '@/components/form-fields'
import { ObjectRoute } from '@/components/object-form'
import { ObjectPage } from '@/components/object-page'
import { deletionOf, resource, useObjectEdit, type Stored } from '@/components/resource'
import { useText } from '@/text'
import { Back } from './back'
import { HopEditor } from './hop-editor'
import { ChainState } from './profiles'

type Chain = Schemas['Chain']

const chains = resource('/chains/{id}', {
  key: 'chain',
  type: 'chain',
  blank: { name: '', hops: [], enabled: true },
})

/** Most hops of a chain. */
const MOST = 4

export default function ChainPage() {
  const text = useText()
  return (
    <ObjectRoute resource={chains} newTitle={text.policies.createChain}>
      {(stored) => <ChainForm stored={stored} />}
    </ObjectRoute>
  )
}

function ChainForm({ stored }: { stored: Stored<Chain> | null }) {
  const text = useText()
  const go = useGo()
  const chain = stored?.data
  const edit = useObjectEdit(chains, stored, {
    onSaved: (saved) => {
      if (!chain) go(`/policies/chains/${saved.id}`)
    },
  })
  const { value, set } = edit.draft
  const field = { draft: edit.draft, error: edit.of }
  return (
    <ObjectPage
      question={text.policies.profileQuestion}
      answer={chain?.name ?? text.policies.createChain}
      deletion={deletionOf(chains, chain, {
        title: text.policies.deleteTitle,
        consequence: text.policies.deleteChainMeans,
        action: text.policies.deleteChain,
        back: '/policies/profiles',
      })}
    >
      <EditForm
        edit={edit}
        isNew={!chain}
        buttons={<Back to="/policies/profiles">{text.policies.profiles}</Back>}
      >
        {chain ? <ChainState status={chain.status} /> : null}
        <FieldList {...field} fields={[{ field: 'name', label: text.common.name }]} />
        <h3>{text.policies.columns.hops}</h3>
        <p className="dim">{text.policies.chainsHint}</p>
        <HopEditor hops={value.hops} errorOf={edit.of} most={MOST} onChange={(hops) => set('hops', hops)} />
        <FieldList {...field} fields={[{ field: 'enabled', kind: 'check', label: text.common.enabled }]} />
      </EditForm>
    </ObjectPage>
  )
}
