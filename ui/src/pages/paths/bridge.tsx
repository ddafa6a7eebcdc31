// One bridge: whether it is up, its test, and its settings.

import { useState } from 'react'
import { call, client, type Schemas } from '@/api/client'
import { get, useChange, useGet } from '@/api/query'
import { useTitle } from '@/session/crumb'
import { sayError } from '@/session/toasts'
import { Button } from '@/components/button'
import { Facts } from '@/components/facts'
import { useEdit } from '@/components/edit'
import { EditForm } from '@/components/form'
import { ObjectPage } from '@/components/object-page'
import { usePageId } from '@/components/page-id'
import { Loaded, Section } from '@/components/section'
import { StateWord } from '@/components/state'
import { useText } from '@/text'
import { BridgeFields, bridgeForm, bridgeInput } from './bridge-form'
import { bridgeState, CarriedTunnels, LastTest, Outcome, Way } from './bridges'
import { paths } from './entry'

type Bridge = Schemas['Bridge']

export default function BridgePage() {
  const text = useText()
  const id = usePageId()
  const words = text.paths.bridges
  const bridge = useGet('/bridges/{id}', { path: { id } }, { every: 5000 })
  const health = useGet('/bridges/status', {}, { every: 5000 })
  const [outcome, setOutcome] = useState<Schemas['TestOutcome'] | null>(null)
  const test = useChange(() => call(client.POST('/bridges/{id}/test', { params: { path: { id } } })))
  const shown = bridge.data?.data
  const seen = health.data?.data.find((each) => each.id === id)
  useTitle(shown?.name)
  const status = seen?.status ?? shown?.status
  const named = words.states[status ?? ''] ?? status ?? text.paths.states.unknown ?? ''
  return (
    <ObjectPage
      question={shown ? words.detailQuestion(shown.name) : words.question}
      answer={bridge.error ? text.paths.unknownAnswer : shown ? words.is(named) : text.common.loading}
      actions={
        shown ? (
          <Button
            kind="primary"
            needs="operator"
            busy={test.isPending}
            onClick={() =>
              test.mutate(undefined, { onSuccess: ({ data }) => setOutcome(data), onError: sayError })
            }
          >
            {words.test}
          </Button>
        ) : null
      }
      entry={paths}
      deletion={
        shown
          ? {
              name: shown.name,
              title: words.deleteTitle(shown.name),
              consequence: words.deleteConsequence,
              subject: { type: 'bridge', id },
              mayForce: true,
              remove: (force) =>
                call(
                  client.DELETE('/bridges/{id}', {
                    params: { path: { id }, query: force ? { force: true } : {} },
                  }),
                ),
              back: '/paths/bridges',
              draft: `bridge.${id}`,
            }
          : null
      }
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
              <Facts
                facts={[
                  [
                    words.columns.state,
                    <StateWord key="state" state={bridgeState(status)}>
                      {named}
                    </StateWord>,
                  ],
                  [words.columns.way, <Way key="way" bridge={read} />],
                  [words.columns.tunnels, <CarriedTunnels key="tunnels" health={seen} />],
                  [
                    words.columns.test,
                    <LastTest key="test" test={seen?.last_test ?? read.last_test ?? null} />,
                  ],
                ]}
              />
            </Section>
            <Section title={words.settings}>
              <Edit key={read.id} bridge={read} etag={bridge.data?.etag ?? null} />
            </Section>
          </>
        )}
      </Loaded>
    </ObjectPage>
  )
}

function Edit({ bridge, etag }: { bridge: Bridge; etag: string | null }) {
  const id = bridge.id
  const edit = useEdit({
    key: `bridge.${id}`,
    version: { value: bridgeForm(bridge), etag },
    save: (value, tag) =>
      call(
        client.PUT('/bridges/{id}', {
          params: { path: { id }, header: tag ? { 'If-Match': tag } : {} },
          body: { ...bridge, ...bridgeInput(value) },
        }),
      ),
    read: async () => {
      const now = await get('/bridges/{id}', { path: { id } })
      return { value: bridgeForm(now.data), etag: now.etag }
    },
  })
  return (
    <EditForm edit={edit}>
      <BridgeFields edit={edit} />
    </EditForm>
  )
}
