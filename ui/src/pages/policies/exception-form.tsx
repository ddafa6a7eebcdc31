// The form of a new exception.

import { useState } from 'react'
import { ApiError, call, client } from '@/api/client'
import { useChange } from '@/api/query'
import { say } from '@/session/toasts'
import { Button } from '@/components/button'
import { useDraft, type Draft } from '@/components/draft'
import { linesOf } from '@/components/draft-lines'
import { LONGEST, type Exception, type ExceptionInput } from '@/components/exceptions/exceptions'
import { ErrorSummary } from '@/components/fields'
import { FieldList } from '@/components/form-fields'
import { HostAdopter } from '@/components/hosts/host-adopter'
import { Failure } from '@/components/section'
import { useText } from '@/text'
import { useNames, useProfiles } from './data'

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
  const { devices } = useNames()
  const draft = useDraft<Written>('exception', { ...START, device_id: device ?? '' })
  const { value } = draft
  const [asked, setAsked] = useState(false)
  const start = useChange((body: ExceptionInput) => call(client.POST('/exceptions', { body: body as never })))
  const problem = start.error instanceof ApiError ? start.error : null
  const missing = value.reason.trim() === ''
  const submit = () => {
    setAsked(true)
    if (missing) return
    start.mutate(inputOf(value), {
      onSuccess: ({ data, warnings }) => {
        const name = devices.find((each) => each.id === data.device_id)?.name ?? '-'
        say(text.policies.exceptionStarted(name), warnings)
        draft.discard()
        onDone()
      },
    })
  }
  const errorOf = (path: string) =>
    problem?.of(path) ??
    (path === 'reason' && asked && missing ? text.policies.reasonMissing : undefined) ??
    (path === 'targets'
      ? problem?.fields.find((field) => field.path.startsWith('targets'))?.message
      : undefined)
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
      <Subject draft={draft} error={errorOf} />
      <Duration draft={draft} error={errorOf} />
      <Limits draft={draft} error={errorOf} />
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

function inputOf(value: Written): ExceptionInput {
  return {
    type: value.type,
    device_id: value.device_id,
    duration_min: Number(value.duration),
    reason: value.reason.trim(),
    targets: value.type === 'service-allowlist' ? linesOf(value.targets) : [],
    allow_direct: value.type !== 'quarantine' && value.allow_direct,
    profile: value.type === 'temporary-direct' ? value.profile || null : null,
  } as ExceptionInput
}

interface PartProps {
  draft: Draft<Written>
  error: (path: string) => string | undefined
}

/** What it does, and for which device. */
function Subject({ draft, error }: PartProps) {
  const words = useText().policies
  const { devices, loading } = useNames()
  return (
    <>
      <FieldList
        draft={draft}
        error={error}
        fields={[
          {
            field: 'type',
            kind: 'choice',
            label: words.exceptionType,
            hint: words.exceptionMeans[draft.value.type],
            options: Object.entries(words.exceptionTypes),
          },
          {
            field: 'device_id',
            kind: 'select',
            label: words.exceptionDevice,
            options: [['', words.choose], ...devices.map((each) => [each.id, each.name] as const)],
            loading,
          },
        ]}
      />
      <HostAdopter onAdopted={(id) => draft.set('device_id', id)} />
    </>
  )
}

function Duration({ draft, error }: PartProps) {
  const words = useText().policies
  return (
    <div className="formrow">
      <FieldList
        draft={draft}
        error={error}
        fields={[
          {
            field: 'duration',
            path: 'duration_min',
            kind: 'number',
            label: words.duration,
            hint: words.durationHint,
            min: 1,
            max: LONGEST,
          },
        ]}
      />
      <div className="btns">
        {words.durations.map(([minutes, label]) => (
          <Button
            key={minutes}
            size="small"
            aria-pressed={Number(draft.value.duration) === minutes}
            onClick={() => draft.set('duration', String(minutes))}
          >
            {label}
          </Button>
        ))}
      </div>
    </div>
  )
}

/** Why it is made, and what it lets out. */
function Limits({ draft, error }: PartProps) {
  const words = useText().policies
  const profiles = useProfiles().data?.data ?? []
  const { type } = draft.value
  return (
    <FieldList
      draft={draft}
      error={error}
      fields={[
        { field: 'reason', label: words.exceptionReason, hint: words.reasonHint, required: true },
        type === 'service-allowlist' && {
          field: 'targets',
          kind: 'area',
          rows: 5,
          label: words.targets,
          hint: words.targetsHint,
        },
        type === 'temporary-direct' &&
          profiles.length > 0 && {
            field: 'profile',
            kind: 'choice',
            label: words.exceptionProfile,
            options: [['', words.noneChosen], ...profiles.map((each) => [each.id, each.name] as const)],
          },
        type !== 'quarantine' && {
          field: 'allow_direct',
          kind: 'check',
          label: words.allowDirect,
          hint: words.allowDirectHint,
        },
      ]}
    />
  )
}
