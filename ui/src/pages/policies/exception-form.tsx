// The form of a new exception.

import { useState } from 'react'
import { call, client } from '@/api/client'
import { Button } from '@/components/button'
import { useDraft, type Draft } from '@/components/draft'
import { linesOf } from '@/components/draft-lines'
import { LONGEST, type Exception, type ExceptionInput } from '@/components/exceptions/exceptions'
import { FieldList } from '@/components/form-fields'
import { HostAdopter } from '@/components/hosts/host-adopter'
import { useFormAction } from '@/components/action'
import { ActionForm } from '@/components/action-form'
import type { Search } from '@/session/search-params'
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

interface Props {
  /** What the address has of it. */
  search: Search
  onDone: () => void
}

export function ExceptionForm({ search, onDone }: Props) {
  const text = useText()
  const { devices } = useNames()
  const { type, device, targets } = search
  const draft = useDraft<Written>(
    type === undefined ? 'exception' : `exception.${device}.${type}.${targets}`,
    {
      ...START,
      device_id: device ?? '',
      type: type !== undefined && type in text.policies.exceptionTypes ? (type as Kind) : START.type,
      targets: targets ?? '',
    },
  )
  const { value } = draft
  const [asked, setAsked] = useState(false)
  const start = useFormAction(
    (body: ExceptionInput) => call(client.POST('/exceptions', { body: body as never })),
    (data) => {
      const name = devices.find((each) => each.id === data.device_id)?.name ?? '-'
      draft.discard()
      onDone()
      return text.policies.exceptionStarted(name)
    },
  )
  const missing = value.reason.trim() === ''
  const submit = () => {
    setAsked(true)
    if (missing) return
    start.run(inputOf(value))
  }
  const errorOf = (path: string) =>
    start.of(path) ?? (path === 'reason' && asked && missing ? text.policies.reasonMissing : undefined)
  return (
    <ActionForm
      of={start}
      noValidate
      onSubmit={submit}
      word={text.policies.startException}
      needs="operator"
      disabled={value.device_id === ''}
      onCancel={onDone}
    >
      <Subject draft={draft} error={errorOf} />
      <Duration draft={draft} error={errorOf} />
      <Limits draft={draft} error={errorOf} />
    </ActionForm>
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
