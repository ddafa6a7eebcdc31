// In a form that is about devices: a host that is no device yet becomes one, and is chosen.

import { useState } from 'react'
import { ApiError } from '@/api/client'
import { say } from '@/session/toasts'
import { Button } from '@/components/button'
import { TextField } from '@/components/fields'
import { PickOne } from '@/components/picker'
import { Failure } from '@/components/section'
import { useText } from '@/text'
import { useAdoption } from './adoption'
import { lineOf, nameOf, useStrangers } from './hosts'

interface Props {
  onAdopted: (id: string) => void
}

/** Nothing while each host is a device, or none is known. */
export function HostAdopter({ onAdopted }: Props) {
  const text = useText()
  const words = text.hosts.pick
  const strangers = useStrangers()
  const [id, setId] = useState('')
  const [typed, setTyped] = useState<string | null>(null)
  const adopt = useAdoption()
  const host = strangers?.find((each) => each.id === id)
  if (!strangers || strangers.length === 0) return null
  const name = typed ?? (host ? nameOf(host) : '')
  const problem = adopt.error instanceof ApiError ? adopt.error : null
  const submit = () => {
    if (!host || name.trim() === '' || adopt.isPending) return
    adopt.mutate(
      { id: host.id, name: name.trim() },
      {
        onSuccess: ({ data, warnings }) => {
          say(text.hosts.adopted(data.name), warnings)
          setId('')
          setTyped(null)
          onAdopted(data.id)
        },
      },
    )
  }
  return (
    <div className="form wide">
      <PickOne
        label={words.label}
        hint={words.hint}
        value={id}
        options={[['', words.none], ...strangers.map((each) => [each.id, lineOf(each, text)] as const)]}
        onChange={(next) => {
          setId(next)
          setTyped(null)
        }}
      />
      {host ? (
        // Enter in this field is no order to send the form around it.
        // eslint-disable-next-line jsx-a11y/no-static-element-interactions
        <div
          className="form form--line"
          onKeyDown={(event) => {
            if (event.key !== 'Enter' || event.target instanceof HTMLButtonElement) return
            event.preventDefault()
            event.stopPropagation()
            submit()
          }}
        >
          <TextField
            label={words.name}
            value={name}
            error={problem?.of('name')}
            autoComplete="off"
            onChange={setTyped}
          />
          <Button needs="operator" busy={adopt.isPending} disabled={name.trim() === ''} onClick={submit}>
            {text.hosts.adopt}
          </Button>
        </div>
      ) : null}
      {adopt.error && !problem?.of('name') ? <Failure error={adopt.error} /> : null}
    </div>
  )
}
