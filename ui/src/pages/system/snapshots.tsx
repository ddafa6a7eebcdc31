// Snapshots of the configuration, their differences to now, and the way back to one.

import { useState } from 'react'
import { call, client, type Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { useSearchParams } from '@/session/search-params'
import { Page } from '@/components/answer'
import { Button } from '@/components/button'
import { LoadedSection, Empty } from '@/components/section'
import { Age, useAge } from '@/components/time'
import { Table } from '@/components/table'
import { TwoLines } from '@/components/two-lines'
import { useAction } from '@/components/action'
import { useText } from '@/text'
import { formatBytes } from '@/text/format'
import { PlanResult } from './plan-result'
import { RollbackPreview } from './rollback'

type Snapshot = Schemas['Snapshot']

export default function Snapshots() {
  const text = useText()
  const t = text.system.snapshots
  const read = useGet('/snapshots')
  const [search, change] = useSearchParams()
  const [result, setResult] = useState<Schemas['PlanResult']>()
  const chosen = read.data?.data.find((each) => each.name === search.snapshot)
  return (
    <Page
      question={t.question}
      answer={read.data ? <Sentence snapshots={read.data.data} /> : text.common.loading}
    >
      {result ? <PlanResult result={result} title={t.result} /> : null}
      <LoadedSection
        title={t.list}
        hint={t.hint}
        actions={<TakeSnapshot />}
        query={read}
        empty={<Empty command="gateway-ctl snapshots">{t.noneHint}</Empty>}
      >
        {(list) => (
          <List
            snapshots={list}
            selected={search.snapshot}
            onSelect={(name) => {
              setResult(undefined)
              change({ snapshot: name === search.snapshot ? undefined : name })
            }}
          />
        )}
      </LoadedSection>
      {chosen ? (
        <RollbackPreview
          key={chosen.name}
          snapshot={chosen}
          onClose={() => change({ snapshot: undefined })}
          onDone={(done) => {
            setResult(done)
            change({ snapshot: undefined })
          }}
        />
      ) : null}
    </Page>
  )
}

function TakeSnapshot() {
  const t = useText().system.snapshots
  const [name, setName] = useState('')
  const take = useAction(
    () => call(client.POST('/snapshots', { body: { name: name.trim() || null } })),
    (data) => {
      setName('')
      return t.taken(data.name)
    },
  )
  return (
    <form
      className="filters"
      onSubmit={(event) => {
        event.preventDefault()
        take.run()
      }}
    >
      <input
        className="field"
        aria-label={t.name}
        placeholder={t.nameHint}
        value={name}
        onChange={(event) => setName(event.target.value)}
      />
      <Button kind="primary" submit needs="admin" busy={take.busy}>
        {t.take}
      </Button>
    </form>
  )
}

function Sentence({ snapshots }: { snapshots: Snapshot[] }) {
  const text = useText()
  const t = text.system.snapshots
  const age = useAge(snapshots[0]?.created_at)
  if (snapshots.length === 0) return <>{t.none}</>
  return (
    <>
      {t.sentence(snapshots.length)}; {t.last} {age} {t.old}
    </>
  )
}

interface ListProps {
  snapshots: Snapshot[]
  selected: string | undefined
  onSelect: (name: string) => void
}

function List({ snapshots, selected, onSelect }: ListProps) {
  const text = useText()
  const t = text.system.snapshots
  return (
    <Table
      label={t.list}
      rows={snapshots}
      id={(snapshot) => snapshot.name}
      rowClass={(snapshot) => (snapshot.name === selected ? 'is-sel' : undefined)}
      columns={[
        { head: t.name, bare: true, className: 'med', cell: (snapshot) => snapshot.name },
        { head: t.when, className: 'nowrap', cell: (snapshot) => <Age time={snapshot.created_at} /> },
        { head: t.reason, cell: (snapshot) => t.reasons[snapshot.reason] },
        { head: t.author, cell: (snapshot) => snapshot.author || '-' },
        {
          head: t.content,
          cell: (snapshot) => (
            <TwoLines
              second={
                <>
                  {text.system.about.revision} {snapshot.revision}, {snapshot.version}
                </>
              }
            >
              {snapshot.summary}
            </TwoLines>
          ),
        },
        { head: t.size, numeric: true, className: 'nowrap', cell: (snapshot) => formatBytes(snapshot.size) },
        {
          numeric: true,
          cell: (snapshot) => (
            <Button
              size="small"
              needs="admin"
              aria-pressed={snapshot.name === selected}
              onClick={() => onSelect(snapshot.name)}
            >
              {t.compare}
            </Button>
          ),
        },
      ]}
    />
  )
}
