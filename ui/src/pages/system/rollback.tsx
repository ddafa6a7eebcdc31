// What a rollback to a snapshot would change now, and the rollback itself.

import { useState } from 'react'
import { useQuery } from '@tanstack/react-query'
import { call, client, type Schemas } from '@/api/client'
import { live } from '@/api/live'
import { SLOW } from '@/api/query'
import { Button } from '@/components/button'
import { Confirm } from '@/components/confirm'
import { Check } from '@/components/fields'
import { Loaded, Section } from '@/components/section'
import { useAge } from '@/components/time'
import { useFormAction } from '@/components/action'
import { useText } from '@/text'
import { formatTime } from '@/text/format'
import { changedOf, PlanChanges } from './plan-changes'
import { PlanResult } from './plan-result'

type Snapshot = Schemas['Snapshot']
type Result = Schemas['PlanResult']

/** Seconds within which a rollback must be kept, if one asks for it. */
const CONFIRM = 90

const preview = (name: string) =>
  call(
    client.POST('/rollback', {
      params: { query: { dry_run: true } },
      body: { snapshot: name, confirm_timeout_sec: 0 },
    }),
  )

interface Props {
  snapshot: Snapshot
  onClose: () => void
  onDone: (result: Result) => void
}

/** The differences between a snapshot and now. */
export function RollbackPreview({ snapshot, onClose, onDone }: Props) {
  const text = useText()
  const t = text.system.snapshots
  const [asking, setAsking] = useState(false)
  const read = useQuery({
    queryKey: ['/rollback', snapshot.name],
    queryFn: () => preview(snapshot.name),
    refetchInterval: (query) => live.pause(SLOW, query.state.fetchFailureCount),
  })
  const found = read.data?.data
  return (
    <Section
      title={t.compared(snapshot.name)}
      hint={t.comparedHint}
      actions={
        <>
          <Button
            kind="primary"
            needs="admin"
            disabled={!found || read.error !== null || !found.valid || isSame(found)}
            onClick={() => setAsking(true)}
          >
            {t.rollback}
          </Button>
          <Button kind="ghost" onClick={onClose}>
            {text.common.close}
          </Button>
        </>
      }
    >
      <Loaded query={read}>
        {(result) => (
          <>
            <p className="med">{wordsOf(result, t)}</p>
            <PlanResult result={result} preview headings={[t.before, t.afterwards]} />
          </>
        )}
      </Loaded>
      {asking && found ? (
        <Question snapshot={snapshot} preview={found} onClose={() => setAsking(false)} onDone={onDone} />
      ) : null}
    </Section>
  )
}

/** A rollback would change neither objects nor settings nor the rules in the kernel. */
function isSame(result: Result): boolean {
  return changedOf(result).length + result.settings.length === 0 && result.plan?.changed !== true
}

function wordsOf(
  { valid, counts, settings, plan }: Result,
  t: ReturnType<typeof useText>['system']['snapshots'],
) {
  if (!valid) return t.impossible
  const parts = [
    counts.create > 0 ? t.comeBack(counts.create) : '',
    counts.update > 0 ? t.goBack(counts.update) : '',
    counts.delete > 0 ? t.vanish(counts.delete) : '',
    settings.length > 0 ? t.settingsBack(settings.length) : '',
  ].filter(Boolean)
  const rules = plan?.changed ? t.rulesChange : t.rulesStay
  return parts.length === 0 ? `${t.same} ${rules}` : `${t.would(parts.join(', '))} ${rules}`
}

interface QuestionProps extends Props {
  preview: Result
}

function Question({ snapshot, preview, onClose, onDone }: QuestionProps) {
  const text = useText()
  const t = text.system.snapshots
  const age = useAge(snapshot.created_at)
  const [confirmed, setConfirmed] = useState(true)
  const rollback = useFormAction(
    () =>
      call(
        client.POST('/rollback', {
          // A change in between refuses the rollback: what is confirmed is what was shown.
          headers: { 'If-Match': `"${preview.revision}"` },
          body: { snapshot: snapshot.name, confirm_timeout_sec: confirmed ? CONFIRM : 0 },
        }),
      ),
    (data) => {
      onClose()
      onDone(data)
      return t.done(snapshot.name)
    },
  )
  return (
    <Confirm
      open
      wide
      onClose={onClose}
      title={t.rollbackTo(snapshot.name)}
      consequence={t.consequence(formatTime(snapshot.created_at, 'long'), age)}
      name={snapshot.name}
      action={t.rollback}
      busy={rollback.busy}
      error={rollback.error}
      onConfirm={() => rollback.run()}
    >
      <p className="med">{wordsOf(preview, t)}</p>
      {changedOf(preview).length + preview.settings.length > 0 ? (
        <PlanChanges result={preview} headings={[t.before, t.afterwards]} />
      ) : null}
      <Check label={t.confirm} checked={confirmed} onChange={setConfirmed} />
    </Confirm>
  )
}
