// Snapshots of the configuration, their differences to now, and the way back to one.

import { useState } from 'react'
import { call, client, type Schemas } from '@/api/client'
import { useChange, useGet } from '@/api/query'
import { useSearchParams } from '@/session/search-params'
import { say, sayError } from '@/session/toasts'
import { Answer, Tabs } from '@/components/answer'
import { Button } from '@/components/button'
import { Empty, Loaded, Section } from '@/components/section'
import { Age, useAge } from '@/components/time'
import { useText } from '@/text'
import { formatBytes } from '@/text/format'
import { system } from './entry'
import { PlanResult } from './plan-result'
import { RollbackPreview } from './rollback'

type Snapshot = Schemas['Snapshot']

export default function Snapshots() {
  const text = useText()
  const t = text.system.snapshots
  const read = useGet('/snapshots')
  const [search, change] = useSearchParams()
  const [name, setName] = useState('')
  const take = useChange(() => call(client.POST('/snapshots', { body: { name: name.trim() || null } })))
  const [result, setResult] = useState<Schemas['PlanResult']>()
  const chosen = read.data?.data.find((each) => each.name === search.snapshot)
  return (
    <>
      <Answer question={t.question}>
        {read.data ? <Sentence snapshots={read.data.data} /> : text.common.loading}
      </Answer>
      <Tabs entry={system} />
      {result ? <PlanResult result={result} title={t.result} /> : null}
      <Section
        title={t.list}
        hint={t.hint}
        actions={
          <form
            className="filters"
            onSubmit={(event) => {
              event.preventDefault()
              take.mutate(undefined, {
                onSuccess: ({ data, warnings }) => {
                  setName('')
                  say(t.taken(data.name), warnings)
                },
                onError: sayError,
              })
            }}
          >
            <input
              className="field"
              aria-label={t.name}
              placeholder={t.nameHint}
              value={name}
              onChange={(event) => setName(event.target.value)}
            />
            <Button kind="primary" submit needs="admin" busy={take.isPending}>
              {t.take}
            </Button>
          </form>
        }
      >
        <Loaded
          query={read}
          isEmpty={(list) => list.length === 0}
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
        </Loaded>
      </Section>
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
    </>
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
    <table className="tbl tbl--card" aria-label={t.list}>
      <thead>
        <tr>
          <th scope="col">{t.name}</th>
          <th scope="col">{t.when}</th>
          <th scope="col">{t.reason}</th>
          <th scope="col">{t.author}</th>
          <th scope="col">{t.content}</th>
          <th scope="col" className="num">
            {t.size}
          </th>
          <th scope="col" />
        </tr>
      </thead>
      <tbody>
        {snapshots.map((snapshot) => (
          <tr key={snapshot.name} className={snapshot.name === selected ? 'is-sel' : undefined}>
            <td className="med">{snapshot.name}</td>
            <td data-l={t.when} className="nowrap">
              <Age time={snapshot.created_at} />
            </td>
            <td data-l={t.reason}>{t.reasons[snapshot.reason] ?? snapshot.reason}</td>
            <td data-l={t.author}>{snapshot.author || '-'}</td>
            <td data-l={t.content}>
              <span className="two">
                <span>{snapshot.summary}</span>
                <small>
                  {text.system.about.revision} {snapshot.revision}, {snapshot.version}
                </small>
              </span>
            </td>
            <td data-l={t.size} className="num nowrap">
              {formatBytes(snapshot.size)}
            </td>
            <td className="num">
              <Button
                size="small"
                needs="admin"
                aria-pressed={snapshot.name === selected}
                onClick={() => onSelect(snapshot.name)}
              >
                {t.compare}
              </Button>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}
