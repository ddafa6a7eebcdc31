// One bridge: whether it is up, its test, and its settings.

import { answerOf } from '@/components/answer'
import { useState } from 'react'
import { call, client, type Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { useTitle } from '@/session/crumb'
import { Button } from '@/components/button'
import { Facts } from '@/components/facts'
import { ObjectForm } from '@/components/object-form'
import { ObjectPage } from '@/components/object-page'
import { usePageId } from '@/components/page-id'
import { deletionOf, useObject } from '@/components/resource'
import { Loaded, Section } from '@/components/section'
import { StateWord } from '@/components/state'
import { useAction } from '@/components/action'
import { useText } from '@/text'
import { allBridges, BridgeFields } from './bridge-form'
import { bridgeState, CarriedTunnels, LastTest, Outcome, Way } from './bridges'

export default function BridgePage() {
  const text = useText()
  const id = usePageId()
  const words = text.paths.bridges
  const bridge = useObject(allBridges, id, { every: 5000 })
  const health = useGet('/bridges/status', {}, { every: 5000 })
  const [outcome, setOutcome] = useState<Schemas['TestOutcome'] | null>(null)
  const test = useAction(
    () => call(client.POST('/bridges/{id}/test', { params: { path: { id } } })),
    (data) => setOutcome(data),
  )
  const shown = bridge.data?.data
  const seen = health.data?.data.find((each) => each.id === id)
  useTitle(shown?.name)
  const status = seen?.status ?? shown?.status
  const named = words.states[status ?? ''] ?? status ?? text.paths.states.unknown ?? ''
  return (
    <ObjectPage
      question={shown ? words.detailQuestion(shown.name) : words.question}
      answer={answerOf(bridge, text, () => words.is(named))}
      actions={
        shown ? (
          <Button kind="primary" needs="operator" does={test}>
            {words.test}
          </Button>
        ) : null
      }
      deletion={deletionOf(allBridges, shown, {
        title: words.deleteTitle,
        consequence: words.deleteConsequence,
        mayForce: true,
        back: '/paths/bridges',
      })}
    >
      {outcome ? (
        <Section title={words.testTitle(shown?.name ?? '')}>
          <Outcome outcome={outcome} />
        </Section>
      ) : null}
      <Loaded query={bridge} lines={6}>
        {(read) => (
          <>
            <Section title={text.paths.detail.facts}>
              <BridgeFacts bridge={read} health={seen} word={named} />
            </Section>
            <Section title={words.settings}>
              <ObjectForm
                key={read.id}
                resource={allBridges}
                stored={{ data: read, etag: bridge.data?.etag ?? null }}
              >
                {(edit) => <BridgeFields edit={edit} />}
              </ObjectForm>
            </Section>
          </>
        )}
      </Loaded>
    </ObjectPage>
  )
}

interface FactsProps {
  bridge: Schemas['Bridge']
  health: Schemas['BridgeHealth'] | undefined
  /** Its state in a word. */
  word: string
}

function BridgeFacts({ bridge, health, word }: FactsProps) {
  const { columns } = useText().paths.bridges
  return (
    <Facts
      facts={[
        [
          columns.state,
          <StateWord key="state" state={bridgeState(health?.status ?? bridge.status)}>
            {word}
          </StateWord>,
        ],
        [columns.way, <Way key="way" bridge={bridge} />],
        [columns.tunnels, <CarriedTunnels key="tunnels" health={health} />],
        [columns.test, <LastTest key="test" test={health?.last_test ?? bridge.last_test ?? null} />],
      ]}
    />
  )
}
