// The name of the device that a host becomes, and what follows from it.

import { useState } from 'react'
import { ApiError, type Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { say } from '@/session/toasts'
import { Dialog } from '@/components/dialog'
import { Select, TextField } from '@/components/fields'
import { ActionForm } from '@/components/action-form'
import { useText } from '@/text'
import { useAdoption } from './adoption'
import { nameOf, type Host } from './hosts'

export type Deed = 'adopt' | 'quarantine' | 'block'

const STATUS: Record<Deed, Schemas['DeviceStatusInput']> = {
  adopt: 'known',
  quarantine: 'quarantined',
  block: 'blocked',
}

interface Props {
  host: Host
  /** What becomes of the host; null while the dialog is closed. */
  deed: Deed | null
  onClose: () => void
}

export function HostDialog({ host, deed, onClose }: Props) {
  const text = useText()
  return (
    <Dialog open={deed !== null} onClose={onClose} title={deed ? text.hosts.dialog[deed](nameOf(host)) : ''}>
      {deed ? <Form host={host} deed={deed} onClose={onClose} /> : null}
    </Dialog>
  )
}

function Form({ host, deed, onClose }: { host: Host; deed: Deed; onClose: () => void }) {
  const text = useText()
  const words = text.hosts.dialog
  const [name, setName] = useState(() => nameOf(host))
  const [trustClass, setTrustClass] = useState('')
  const classes = useGet('/trust-classes', {}, { every: 60_000, enabled: deed === 'adopt' }).data?.data
  const adopt = useAdoption()
  const problem = adopt.error instanceof ApiError && adopt.error.fields.length > 0 ? adopt.error : null
  const done = {
    adopt: text.hosts.adopted,
    quarantine: text.hosts.quarantined,
    block: text.hosts.blockedNow,
  }[deed]
  return (
    <ActionForm
      of={{ busy: adopt.isPending, error: adopt.error }}
      onSubmit={() =>
        adopt.mutate(
          { id: host.id, name, status: STATUS[deed], ...(trustClass ? { trust_class: trustClass } : {}) },
          {
            onSuccess: ({ data, warnings }) => {
              say(done(data.name), warnings)
              onClose()
            },
          },
        )
      }
      word={deed === 'adopt' ? text.hosts.adopt : text.hosts[deed]}
      needs="operator"
      disabled={name.trim() === ''}
      onCancel={onClose}
    >
      <p className="mid">{words.means[deed]}</p>
      <TextField
        label={words.name}
        value={name}
        error={problem?.of('name')}
        onChange={setName}
        autoComplete="off"
        required
      />
      {deed === 'adopt' ? (
        <Select
          label={words.trustClass}
          value={trustClass}
          error={problem?.of('trust_class')}
          options={[['', words.standard], ...(classes ?? []).map((each) => [each.name, each.name] as const)]}
          onChange={setTrustClass}
        />
      ) : null}
    </ActionForm>
  )
}
