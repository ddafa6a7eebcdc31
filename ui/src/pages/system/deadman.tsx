// The dead-man switch.

import { useState } from 'react'
import { call, client, type Schemas } from '@/api/client'
import { Facts } from '@/components/facts'
import { Confirm } from '@/components/confirm'
import { useDraft } from '@/components/draft'
import { FieldList } from '@/components/form-fields'
import { StateWord } from '@/components/state'
import { Age } from '@/components/time'
import { useFormAction } from '@/components/action'
import { ActionForm } from '@/components/action-form'
import { useText } from '@/text'
import { formatTime } from '@/text/format'

type Status = Schemas['DeadmanStatus']
type Form = { enabled: boolean; hours: string; level: Schemas['WipeLevelInput'] }

const LEVELS: Schemas['WipeLevel'][] = ['soft', 'medium', 'hard']

export function Deadman({ status }: { status: Status }) {
  const text = useText()
  const t = text.system.security
  const draft = useDraft<Form>('deadman', {
    enabled: status.enabled,
    hours: String(status.hours),
    level: status.level,
  })
  const [asking, setAsking] = useState(false)
  const { enabled, hours, level } = draft.value
  const save = useFormAction(
    () => call(client.PUT('/system/deadman', { body: { enabled, hours: Number(hours), level } })),
    (data) => {
      draft.replace({ enabled: data.enabled, hours: String(data.hours), level: data.level })
      setAsking(false)
      return text.common.saved
    },
  )
  return (
    <>
      <DeadmanFacts status={status} />
      <ActionForm
        className="form form--2"
        of={save}
        onSubmit={() => (enabled ? setAsking(true) : save.run())}
        word={text.common.save}
        kind="plain"
        needs="admin"
        disabled={!draft.dirty}
      >
        <FieldList
          draft={draft}
          error={save.of}
          fields={[
            { field: 'hours', kind: 'number', label: t.hours, min: 1, max: 8760, required: true },
            {
              field: 'level',
              kind: 'choice',
              label: t.level,
              options: LEVELS.map((each) => [each, t.levels[each]]),
            },
            { field: 'enabled', kind: 'check', wide: true, label: t.enabled },
          ]}
        />
      </ActionForm>
      <Confirm
        open={asking}
        onClose={() => setAsking(false)}
        title={t.armTitle}
        consequence={t.armConsequence(Number(hours), level)}
        name={t.armName}
        action={t.arm}
        busy={save.busy}
        error={save.error}
        onConfirm={() => save.run()}
      />
    </>
  )
}

function DeadmanFacts({ status }: { status: Status }) {
  const t = useText().system.security
  return (
    <>
      <Facts
        facts={[
          [
            t.deadman,
            <StateWord key="state" state={status.enabled ? 'ok' : 'idle'}>
              {status.enabled ? t.armed : t.off}
            </StateWord>,
          ],
          status.enabled && [t.lastCheckin, <Age key="checkin" time={status.last_checkin} />],
          status.enabled && [
            t.deadline,
            status.deadline ? formatTime(status.deadline, 'long') : t.noDeadline,
          ],
        ]}
      />
      {status.enabled && !status.clock_synced ? <p className="mid">{t.noClock}</p> : null}
      {status.warned_percent === null ? null : <p className="mid">{t.warned(status.warned_percent)}</p>}
    </>
  )
}
