// Snapshots of the configuration, and the way back to one.

import { useState } from 'react'
import { call, client, type Schemas } from '@/api/client'
import { useChange, useGet } from '@/api/query'
import { say, sayError } from '@/app/toasts'
import { Answer, Tabs } from '@/components/answer'
import { Button } from '@/components/button'
import { Confirm } from '@/components/confirm'
import { Check } from '@/components/fields'
import { Empty, Loaded, Section } from '@/components/section'
import { Age, useAge } from '@/components/time'
import { useText } from '@/text'
import { formatBytes, formatTime } from '@/text/format'
import { system } from './entry'
import { PlanResult } from './plan-result'

type Snapshot = Schemas['Snapshot']

/** Seconds within which a rollback must be kept, if one asks for it. */
const CONFIRM = 90

export default function Snapshots() {
  const text = useText()
  const t = text.system.snapshots
  const read = useGet('/snapshots')
  const [back, setBack] = useState<Snapshot>()
  const [name, setName] = useState('')
  const take = useChange(() => call(client.POST('/snapshots', { body: { name: name.trim() || null } })))
  const [result, setResult] = useState<Schemas['PlanResult']>()
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
          empty={<Empty command="gateway-ctl snapshots">{t.none}</Empty>}
        >
          {(list) => <List snapshots={list} onBack={setBack} />}
        </Loaded>
      </Section>
      {back ? (
        <Rollback snapshot={back} onClose={() => setBack(undefined)} onDone={(done) => setResult(done)} />
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

function List({ snapshots, onBack }: { snapshots: Snapshot[]; onBack: (snapshot: Snapshot) => void }) {
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
          <tr key={snapshot.name}>
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
              <Button size="small" needs="admin" onClick={() => onBack(snapshot)}>
                {t.rollback}
              </Button>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

interface RollbackProps {
  snapshot: Snapshot
  onClose: () => void
  onDone: (result: Schemas['PlanResult']) => void
}

function Rollback({ snapshot, onClose, onDone }: RollbackProps) {
  const text = useText()
  const t = text.system.snapshots
  const age = useAge(snapshot.created_at)
  const [confirmed, setConfirmed] = useState(true)
  const rollback = useChange(() =>
    call(
      client.POST('/rollback', {
        body: { snapshot: snapshot.name, confirm_timeout_sec: confirmed ? CONFIRM : 0 },
      }),
    ),
  )
  return (
    <Confirm
      open
      onClose={onClose}
      title={t.rollbackTo(snapshot.name)}
      consequence={t.consequence(formatTime(snapshot.created_at, 'long'), age)}
      name={snapshot.name}
      action={t.rollback}
      busy={rollback.isPending}
      error={rollback.error}
      onConfirm={() =>
        rollback.mutate(undefined, {
          onSuccess: ({ data, warnings }) => {
            say(t.done(snapshot.name), warnings)
            onDone(data)
            onClose()
          },
        })
      }
    >
      <Check label={t.confirm} checked={confirmed} onChange={setConfirmed} />
    </Confirm>
  )
}
