// The policies in the order in which they are tried.

import { useState } from 'react'
import { useEntry } from '@/components/entries'
import { Link } from '@/session/link'
import { useSearchParams } from '@/session/search-params'
import { Page } from '@/components/answer'
import { Button } from '@/components/button'
import { Icon } from '@/components/icons'
import { Empty, Loaded, Section } from '@/components/section'
import { FilterBox } from '@/components/filter-fields'
import { useText } from '@/text'
import { DropAnswer } from './answer'
import { sourceWords, useMatrix, useNames, usePending, usePolicies } from './data'
import { LeakMatrix } from './leak-matrix'
import { inOrder, type Policy } from './model'
import { OrderTable } from './order-table'
import { NewPolicy } from './new-link'
import { RemovedPolicies } from './removed'

/** Policies up to which the matrix is on this page as well. */
const MATRIX_HERE = 30

export default function Order() {
  const text = useText()
  const query = usePolicies()
  const [search] = useSearchParams()
  const [selecting, setSelecting] = useState(false)
  const count = query.data?.data.length ?? 0
  const matrix = useEntry()?.tabs.some((tab) => tab.path === 'matrix') ?? false
  return (
    <Page
      question={text.policies.question}
      actions={
        <>
          <Link className="btn" to="/policies/exceptions" search={{ new: '1' }}>
            <Icon name="plus" />
            {text.policies.newException}
          </Link>
          <NewPolicy />
        </>
      }
      answer={<DropAnswer />}
    >
      <Section
        title={text.policies.order}
        hint={text.policies.orderHint}
        actions={<ListControls selecting={selecting} onSelecting={setSelecting} />}
      >
        <Loaded
          query={query}
          lines={8}
          empty={
            <Empty action={<NewPolicy />} command="gateway-ctl apply plan.json">
              {text.policies.empty}
            </Empty>
          }
        >
          {(list) => <Filtered list={list} q={search.q} down={search.down} selecting={selecting} />}
        </Loaded>
        <RemovedPolicies />
      </Section>
      {matrix && count > 0 && count <= MATRIX_HERE ? <LeakMatrix /> : null}
    </Page>
  )
}

interface ControlProps {
  selecting: boolean
  onSelecting: (selecting: boolean) => void
}

/** What narrows the list, and the switch of the selection. */
function ListControls({ selecting, onSelecting }: ControlProps) {
  const text = useText()
  const [search, setSearch] = useSearchParams()
  return (
    <>
      {search.down ? (
        <button type="button" className="link" onClick={() => setSearch({ down: undefined })}>
          {text.policies.onlyWhenDown[search.down] ?? search.down}
          <Icon name="x" />
          <span className="sr">{text.policies.showAll}</span>
        </button>
      ) : null}
      <Button
        size="small"
        kind="ghost"
        needs="operator"
        aria-pressed={selecting}
        onClick={() => onSelecting(!selecting)}
      >
        {selecting ? text.policies.endSelect : text.policies.select}
      </Button>
      <FilterBox
        label={text.policies.filter}
        icon="filter"
        placeholder={text.common.filter}
        value={search.q}
        onChange={(q) => setSearch({ q })}
      />
    </>
  )
}

interface FilteredProps {
  list: Policy[]
  q: string | undefined
  down: string | undefined
  selecting: boolean
}

function Filtered({ list, q, down, selecting }: FilteredProps) {
  const text = useText()
  const names = useNames()
  const matrix = useMatrix(false).data?.data
  const pending = usePending()
  const ordered = inOrder(list)
  const words = (q ?? '').toLowerCase().split(/\s+/).filter(Boolean)
  const visible = ordered.filter((policy) => {
    const row = matrix?.rows.find((each) => each.policy_id === policy.id)
    if (down && row?.cells.down.outcome !== down) return false
    const hops = (policy.effective ?? policy).hops.map((hop) => hop.target).join(' ')
    const said = `${policy.name} ${policy.description} ${sourceWords(policy, names, text)} ${hops} ${policy.status} ${policy.fail_policy ?? ''}`
    return words.every((word) => said.toLowerCase().includes(word))
  })
  if (visible.length === 0) return <p className="quiet">{text.policies.nothingMatches}</p>
  return (
    <OrderTable
      all={ordered}
      visible={new Set(visible.map((policy) => policy.id))}
      pending={pending ?? []}
      selecting={selecting}
    />
  )
}
