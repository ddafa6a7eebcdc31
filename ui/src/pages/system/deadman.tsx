// The dead-man switch.

import { useState } from 'react'
import { ApiError, call, client, type Schemas } from '@/api/client'
import { useChange } from '@/api/query'
import { say } from '@/session/toasts'
import { Button } from '@/components/button'
import { Confirm } from '@/components/confirm'
import { useDraft } from '@/components/draft'
import { FieldList } from '@/components/form-fields'
import { Failure } from '@/components/section'
import { StateWord } from '@/components/state'
import { Age } from '@/components/time'
import { useText } from '@/text'
import { formatTime } from '@/text/format'

type Status = Schemas['DeadmanStatus']
type Form = { enabled: boolean; hours: string; level: Schemas['WipeLevelInput'] }

const LEVELS = ['soft', 'medium', 'hard']

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
  const save = useChange(() =>
    call(client.PUT('/system/deadman', { body: { enabled, hours: Number(hours), level } })),
  )
  const error = save.error instanceof ApiError ? save.error : undefined
  const submit = () =>
    save.mutate(undefined, {
      onSuccess: ({ data, warnings }) => {
        draft.replace({ enabled: data.enabled, hours: String(data.hours), level: data.level })
        setAsking(false)
        say(text.common.saved, warnings)
      },
    })
  return (
    <>
      <Facts status={status} />
      <form
        className="form form--2"
        onSubmit={(event) => {
          event.preventDefault()
          if (enabled) setAsking(true)
          else submit()
        }}
      >
        {save.error ? (
          <div className="wide">
            <Failure error={save.error} />
          </div>
        ) : null}
        <FieldList
          draft={draft}
          error={(path) => error?.of(path)}
          fields={[
            { field: 'hours', kind: 'number', label: t.hours, min: 1, max: 8760, required: true },
            {
              field: 'level',
              kind: 'choice',
              label: t.level,
              options: LEVELS.map((each) => [each, t.levels[each] ?? each]),
            },
            { field: 'enabled', kind: 'check', wide: true, label: t.enabled },
          ]}
        />
        <div className="btns wide">
          <Button submit needs="admin" busy={save.isPending} disabled={!draft.dirty}>
            {text.common.save}
          </Button>
        </div>
      </form>
      <Confirm
        open={asking}
        onClose={() => setAsking(false)}
        title={t.armTitle}
        consequence={t.armConsequence(Number(hours), level)}
        name={t.armName}
        action={t.arm}
        busy={save.isPending}
        error={save.error}
        onConfirm={submit}
      />
    </>
  )
}

function Facts({ status }: { status: Status }) {
  const t = useText().system.security
  return (
    <>
      <dl className="facts">
        <dt>{t.deadman}</dt>
        <dd>
          <StateWord state={status.enabled ? 'ok' : 'idle'}>{status.enabled ? t.armed : t.off}</StateWord>
        </dd>
        {status.enabled ? (
          <>
            <dt>{t.lastCheckin}</dt>
            <dd>
              <Age time={status.last_checkin} />
            </dd>
            <dt>{t.deadline}</dt>
            <dd>{status.deadline ? formatTime(status.deadline, 'long') : t.noDeadline}</dd>
          </>
        ) : null}
      </dl>
      {status.enabled && !status.clock_synced ? <p className="mid">{t.noClock}</p> : null}
      {status.warned_percent === null ? null : <p className="mid">{t.warned(status.warned_percent)}</p>}
    </>
  )
}
