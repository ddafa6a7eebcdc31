// The form of a new exception.

import { useState } from 'react'
import { ApiError, call, client } from '@/api/client'
import { useChange } from '@/api/query'
import { say } from '@/session/toasts'
import { Button } from '@/components/button'
import { useDraft } from '@/components/draft'
import { Check, ErrorSummary, Select, TextArea, TextField } from '@/components/fields'
import { HostAdopter } from '@/components/hosts/host-adopter'
import { PickOne } from '@/components/picker'
import { Failure } from '@/components/section'
import { useText } from '@/text'
import { useNames, useProfiles } from './data'
import { LONGEST, type Exception, type ExceptionInput } from '@/components/exceptions/exceptions'
import { linesOf } from '@/components/form'

type Kind = Exception['type']

interface Written extends Record<string, unknown> {
  type: Kind
  device_id: string
  duration: string
  reason: string
  targets: string
  allow_direct: boolean
  profile: string
}

const START: Written = {
  type: 'temporary-direct',
  device_id: '',
  duration: '60',
  reason: '',
  targets: '',
  allow_direct: true,
  profile: '',
}

export function ExceptionForm({ device, onDone }: { device?: string; onDone: () => void }) {
  const text = useText()
  const { devices, loading } = useNames()
  const profiles = useProfiles().data?.data ?? []
  const draft = useDraft<Written>('exception', { ...START, device_id: device ?? '' })
  const { value, set } = draft
  const [asked, setAsked] = useState(false)
  const start = useChange((body: ExceptionInput) => call(client.POST('/exceptions', { body: body as never })))
  const problem = start.error instanceof ApiError ? start.error : null
  const missing = value.reason.trim() === ''
  const submit = () => {
    setAsked(true)
    if (missing) return
    const body = {
      type: value.type,
      device_id: value.device_id,
      duration_min: Number(value.duration),
      reason: value.reason.trim(),
      targets: value.type === 'service-allowlist' ? linesOf(value.targets) : [],
      allow_direct: value.type !== 'quarantine' && value.allow_direct,
      profile: value.type === 'temporary-direct' ? value.profile || null : null,
    } as ExceptionInput
    start.mutate(body, {
      onSuccess: ({ data, warnings }) => {
        say(
          text.policies.exceptionStarted(devices.find((each) => each.id === data.device_id)?.name ?? '-'),
          warnings,
        )
        draft.discard()
        onDone()
      },
    })
  }
  return (
    <form
      className="form"
      noValidate
      onSubmit={(event) => {
        event.preventDefault()
        submit()
      }}
    >
      {problem ? <ErrorSummary error={problem} /> : start.error ? <Failure error={start.error} /> : null}
      <Select
        label={text.policies.exceptionType}
        hint={text.policies.exceptionMeans[value.type]}
        value={value.type}
        error={problem?.of('type')}
        options={Object.entries(text.policies.exceptionTypes).map(
          ([kind, said]) => [kind as Kind, said] as const,
        )}
        onChange={(type) => set('type', type)}
      />
      <PickOne
        label={text.policies.exceptionDevice}
        value={value.device_id}
        error={problem?.of('device_id')}
        options={[
          ['', text.policies.choose],
          ...devices.map((each): [string, string] => [each.id, each.name]),
        ]}
        loading={loading}
        onChange={(id) => set('device_id', id)}
      />
      <HostAdopter onAdopted={(id) => set('device_id', id)} />
      <div className="formrow">
        <TextField
          label={text.policies.duration}
          hint={text.policies.durationHint}
          type="number"
          min={1}
          max={LONGEST}
          value={value.duration}
          error={problem?.of('duration_min')}
          onChange={(duration) => set('duration', duration)}
        />
        <div className="btns">
          {text.policies.durations.map(([minutes, label]) => (
            <Button
              key={minutes}
              size="small"
              aria-pressed={Number(value.duration) === minutes}
              onClick={() => set('duration', String(minutes))}
            >
              {label}
            </Button>
          ))}
        </div>
      </div>
      <TextField
        label={text.policies.exceptionReason}
        hint={text.policies.reasonHint}
        value={value.reason}
        required
        error={problem?.of('reason') ?? (asked && missing ? text.policies.reasonMissing : undefined)}
        onChange={(reason) => set('reason', reason)}
      />
      {value.type === 'service-allowlist' ? (
        <TextArea
          label={text.policies.targets}
          hint={text.policies.targetsHint}
          value={value.targets}
          error={
            problem?.of('targets') ??
            problem?.fields.find((field) => field.path.startsWith('targets'))?.message
          }
          spellCheck={false}
          onChange={(targets) => set('targets', targets)}
        />
      ) : null}
      {value.type === 'temporary-direct' && profiles.length > 0 ? (
        <Select
          label={text.policies.exceptionProfile}
          value={value.profile}
          error={problem?.of('profile')}
          options={[
            ['', text.policies.noneChosen],
            ...profiles.map((each): [string, string] => [each.id, each.name]),
          ]}
          onChange={(profile) => set('profile', profile)}
        />
      ) : null}
      {value.type === 'quarantine' ? null : (
        <Check
          label={text.policies.allowDirect}
          hint={text.policies.allowDirectHint}
          checked={value.allow_direct}
          onChange={(allow) => set('allow_direct', allow)}
        />
      )}
      <div className="btns">
        <Button
          kind="primary"
          submit
          needs="operator"
          busy={start.isPending}
          disabled={value.device_id === ''}
        >
          {text.policies.startException}
        </Button>
        <Button kind="ghost" onClick={onDone}>
          {text.common.cancel}
        </Button>
      </div>
    </form>
  )
}
