// An exception for a limited time: for which device, of which type, how long, and why.

import { useId, useMemo, useState } from 'react'
import { ApiError, call, client, type Schemas } from '@/api/client'
import { useChange, useGet } from '@/api/query'
import { say } from '@/session/toasts'
import { ActionForm } from '@/components/action-form'
import { useText } from '@/text'
import { formatTime } from '@/text/format'
import { Dialog } from '@/components/dialog'
import { useDraft, type Draft } from '@/components/draft'
import { FieldList } from '@/components/form-fields'
import { Failure } from '@/components/section'
import { HostAdopter } from '@/components/hosts/host-adopter'
import { PickOne } from '@/components/picker'
import { Segmented } from '@/components/segmented'
import { useNow } from '@/components/time'

type ExceptionType = Schemas['ExceptionTypeInput']

interface Props {
  open: boolean
  onClose: () => void
  /** The device. Without one it is chosen in the dialog. */
  device?: { id: string; name: string }
  type?: ExceptionType
  minutes?: number
}

export function ExceptionDialog(props: Props) {
  const text = useText()
  return (
    <Dialog
      open={props.open}
      onClose={props.onClose}
      title={props.device ? text.exception.titleOf(props.device.name) : text.exception.title}
    >
      <ExceptionForm {...props} />
    </Dialog>
  )
}

const DURATIONS = ['15', '60', '240', '1440'] as const

function ExceptionForm({ onClose, device, type = 'temporary-direct', minutes = 60 }: Props) {
  const text = useText()
  const missing = useId()
  const [base] = useState<Written>({
    device_id: device?.id ?? '',
    type,
    minutes: String(minutes),
    reason: '',
    targets: '',
  })
  const draft = useDraft(`exception.${device?.id ?? 'new'}.${type}`, base)
  const { value, set } = draft
  const add = useChange((body: Schemas['ExceptionInput']) => call(client.POST('/exceptions', { body })))
  const problem = add.error instanceof ApiError ? add.error : null
  const submit = async () => {
    const made = await add.mutateAsync(inputOf(value))
    draft.discard()
    say(text.exception.made(made.data.expires_at ? formatTime(made.data.expires_at) : ''), made.warnings)
    onClose()
  }
  return (
    <ActionForm
      of={{ busy: add.isPending, error: add.error }}
      onSubmit={() => {
        // The error stays in the state of the mutation.
        submit().catch(() => undefined)
      }}
      word={value.type === 'quarantine' ? text.exception.quarantine : text.exception.allow}
      needs="operator"
      disabled={value.device_id === ''}
      aria-describedby={value.device_id === '' ? missing : undefined}
      onCancel={onClose}
    >
      {device ? null : (
        <DeviceChoice
          value={value.device_id}
          error={problem?.of('device_id')}
          onChange={(id) => set('device_id', id)}
        />
      )}
      <ExceptionFields draft={draft} problem={problem} />
      {value.device_id === '' ? (
        <p className="dim sm" id={missing}>
          {text.exception.deviceMissing}
        </p>
      ) : null}
    </ActionForm>
  )
}

interface Written extends Record<string, unknown> {
  device_id: string
  type: ExceptionType
  minutes: string
  reason: string
  targets: string
}

function inputOf(value: Written): Schemas['ExceptionInput'] {
  return {
    device_id: value.device_id,
    type: value.type,
    duration_min: Number(value.minutes),
    reason: value.reason,
    allow_direct: value.type !== 'quarantine',
    ...(value.type === 'service-allowlist' ? { targets: value.targets.split(/[\s,]+/).filter(Boolean) } : {}),
  } as Schemas['ExceptionInput']
}

function ExceptionFields({ draft, problem }: { draft: Draft<Written>; problem: ApiError | null }) {
  const words = useText().exception
  const now = useNow()
  const { value, set } = draft
  const minutes = Number(value.minutes)
  const ends =
    Number.isInteger(minutes) && minutes > 0 ? new Date(now + minutes * 60_000).toISOString() : null
  const field = { draft, error: (path: string) => problem?.of(path) }
  return (
    <>
      <FieldList
        {...field}
        fields={[
          {
            field: 'type',
            kind: 'choice',
            label: words.type,
            hint: words.effects[value.type],
            options: Object.entries(words.types),
          },
          value.type === 'service-allowlist' && {
            field: 'targets',
            label: words.targets,
            hint: words.targetsHint,
            required: true,
          },
        ]}
      />
      <div className="formrow">
        <Segmented
          label={words.duration}
          value={value.minutes}
          options={DURATIONS.map((each) => [each, words.durations[each]] as const)}
          onChange={(chosen) => set('minutes', chosen)}
        />
      </div>
      <FieldList
        {...field}
        fields={[
          {
            field: 'minutes',
            path: 'duration_min',
            kind: 'number',
            label: words.minutes,
            hint: ends ? words.ends(formatTime(ends)) : undefined,
            required: true,
            min: 1,
            max: 1440,
          },
          { field: 'reason', label: words.reason, hint: words.reasonHint, required: true },
        ]}
      />
    </>
  )
}

interface ChoiceProps {
  value: string
  error?: string
  onChange: (id: string) => void
}

/** One of the devices. */
function DeviceChoice({ value, error, onChange }: ChoiceProps) {
  const text = useText()
  const query = useGet('/devices', {}, { every: 60_000 })
  const devices = query.data?.data
  const options = useMemo(
    () => [
      ['', text.exception.choose] as const,
      ...(devices ?? []).map((each) => [each.id, each.name] as const),
    ],
    [devices, text],
  )
  if (query.error && !devices) return <Failure error={query.error} retry={() => void query.refetch()} />
  return (
    <>
      <PickOne
        label={text.exception.device}
        value={value}
        error={error}
        options={options}
        loading={query.isPending}
        onChange={onChange}
      />
      <HostAdopter onAdopted={onChange} />
    </>
  )
}
