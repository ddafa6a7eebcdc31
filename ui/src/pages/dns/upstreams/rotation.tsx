// How one of several upstreams is chosen.

import { useState } from 'react'
import { ApiError, call, client, type Schemas } from '@/api/client'
import { useChange, useGet } from '@/api/query'
import { say } from '@/session/toasts'
import { Button } from '@/components/button'
import { useDraft } from '@/components/draft'
import { Check, Select, TextField } from '@/components/fields'
import { LoadedSection } from '@/components/section'
import { ActionForm } from '@/components/action-form'
import { useText } from '@/text'

type Fields = Schemas['DnsRotation']

export function Rotation() {
  const text = useText()
  const query = useGet('/dns/rotation')
  return (
    <LoadedSection title={text.dns.upstreams.rotation.title} query={query}>
      {(data) => <RotationForm key={JSON.stringify(data)} base={data} />}
    </LoadedSection>
  )
}

function RotationForm({ base }: { base: Fields }) {
  const text = useText()
  const { rotation } = text.dns.upstreams
  const draft = useDraft<Fields>('dns.rotation', base)
  const [failed, setFailed] = useState<Error | null>(null)
  const save = useChange((body: Fields) => call(client.PUT('/dns/rotation', { body })))
  const known = failed instanceof ApiError ? failed : null
  const { value, set } = draft
  return (
    <ActionForm
      className="form form--2"
      of={{ busy: save.isPending, error: save.error }}
      onSubmit={() =>
        save.mutate(value, {
          onSuccess: ({ warnings }) => {
            setFailed(null)
            say(text.common.saved, warnings)
          },
          onError: setFailed,
        })
      }
      word={text.common.save}
      kind="plain"
      needs="operator"
      disabled={!draft.dirty}
      buttons={
        draft.dirty ? (
          <Button kind="ghost" onClick={draft.discard}>
            {text.common.cancel}
          </Button>
        ) : null
      }
    >
      <Select
        label={rotation.mode}
        value={value.mode}
        error={known?.of('mode')}
        options={Object.entries(rotation.modes) as [Fields['mode'], string][]}
        onChange={(next) => set('mode', next)}
      />
      <TextField
        label={rotation.interval}
        hint={rotation.intervalHint}
        type="number"
        min={0}
        value={String(value.interval_sec)}
        error={known?.of('interval_sec')}
        onChange={(next) => set('interval_sec', Number(next))}
      />
      <Check
        label={rotation.sticky}
        checked={value.sticky_per_device}
        onChange={(next) => set('sticky_per_device', next)}
      />
    </ActionForm>
  )
}
