// What would happen if a device asked for a name now.

import { useState } from 'react'
import { call, client, type Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { useMutation } from '@tanstack/react-query'
import { Link } from '@/session/link'
import { useSearchParams } from '@/session/search-params'
import { Facts } from '@/components/facts'
import { Button } from '@/components/button'
import { TextField } from '@/components/fields'
import { PickOne } from '@/components/picker'
import { Failure, Section } from '@/components/section'
import { StateWord, type State } from '@/components/state'
import { useText } from '@/text'

const STATES: Record<string, State> = { tunnel: 'ok', direct: 'direct', block: 'blocked' }

export function NameTest() {
  const text = useText()
  const { test } = text.dns.lists
  const [search, change] = useSearchParams()
  const devices = useGet('/devices', {}, { every: 60_000 }).data?.data ?? []
  const [name, setName] = useState(search.name ?? '')
  const chosen = devices.find((each) => each.id === search.device) ?? devices[0]
  const evaluate = useMutation({
    mutationFn: (asked: { name: string; device: string }) =>
      call(
        client.POST('/policy/evaluate', {
          body: { device_id: asked.device, destination: asked.name } as never,
        }),
      ),
  })
  const result = evaluate.data?.data
  return (
    <Section title={test.title} hint={test.hint}>
      {devices.length === 0 ? (
        <p className="mid">{test.none}</p>
      ) : (
        <form
          className="form form--line"
          onSubmit={(event) => {
            event.preventDefault()
            const asked = name.trim()
            if (asked === '' || !chosen) return
            change({ name: asked, device: chosen.id })
            evaluate.mutate({ name: asked, device: chosen.id })
          }}
        >
          <TextField
            label={test.name}
            value={name}
            onChange={setName}
            spellCheck={false}
            autoCapitalize="none"
          />
          <PickOne
            label={test.device}
            value={chosen?.id ?? ''}
            options={devices.map((each) => [each.id, each.name] as const)}
            onChange={(device) => change({ device })}
          />
          <Button submit busy={evaluate.isPending} disabled={name.trim() === ''}>
            {test.run}
          </Button>
        </form>
      )}
      <Failure error={evaluate.error} />
      {result ? <Result result={result} /> : null}
    </Section>
  )
}

function Result({ result }: { result: Schemas['Evaluation'] }) {
  const { test } = useText().dns.lists
  return (
    <Facts
      className="facts dns-facts"
      isAnswer
      facts={[
        [test.dns, result.effective.dns, 'strong'],
        [
          test.traffic,
          <span key="traffic">
            <StateWord state={STATES[result.decision] ?? 'unknown'}>{result.decision}</StateWord>{' '}
            <Link to={`/devices/${result.device.id ?? ''}`}>{result.sentence}</Link>
          </span>,
        ],
      ]}
    />
  )
}
