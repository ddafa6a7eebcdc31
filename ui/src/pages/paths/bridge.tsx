// One bridge: whether it is up, its test, and its settings.

import { useState } from 'react'
import { call, client, type Schemas } from '@/api/client'
import { get, useChange, useGet } from '@/api/query'
import { useTitle } from '@/app/crumb'
import { useGo } from '@/app/link'
import { say, sayError } from '@/app/toasts'
import { Answer, Tabs } from '@/components/answer'
import { Button } from '@/components/button'
import { Confirm } from '@/components/confirm'
import { Facts } from '@/components/facts'
import { EditForm, useEdit } from '@/components/form'
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
  const [deleting, setDeleting] = useState(false)
  const [outcome, setOutcome] = useState<Schemas['TestOutcome'] | null>(null)
  const test = useChange(() => call(client.POST('/bridges/{id}/test', { params: { path: { id } } })))
  const shown = bridge.data?.data
  const seen = health.data?.data.find((each) => each.id === id)
  useTitle(shown?.name)
  const status = seen?.status ?? shown?.status
  const named = words.states[status ?? ''] ?? status ?? text.paths.states.unknown ?? ''
  return (
    <>
      <Answer
        question={shown ? words.detailQuestion(shown.name) : words.question}
        actions={
          shown ? (
            <>
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
              <Button needs="operator" onClick={() => setDeleting(true)}>
                {text.common.delete}
              </Button>
            </>
          ) : null
        }
      >
        {bridge.error ? text.paths.unknownAnswer : shown ? words.is(named) : text.common.loading}
      </Answer>
      <Tabs entry={paths} />
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
      {shown ? <Deletion bridge={shown} open={deleting} onClose={() => setDeleting(false)} /> : null}
    </>
  )
}

function Edit({ bridge, etag }: { bridge: Bridge; etag: string | null }) {
  const id = bridge.id
  const [initial] = useState(() => ({ value: bridgeForm(bridge), etag }))
  const edit = useEdit({
    key: `bridge.${id}`,
    initial,
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
    onSaved: () => undefined,
  })
  return (
    <EditForm edit={edit}>
      <BridgeFields edit={edit} />
    </EditForm>
  )
}

function Deletion({ bridge, open, onClose }: { bridge: Bridge; open: boolean; onClose: () => void }) {
  const text = useText()
  const go = useGo()
  const words = text.paths.bridges
  const change = useChange(() =>
    call(client.DELETE('/bridges/{id}', { params: { path: { id: bridge.id }, query: { force: true } } })),
  )
  return (
    <Confirm
      open={open}
      onClose={onClose}
      title={words.deleteTitle(bridge.name)}
      consequence={words.deleteConsequence}
      name={bridge.name}
      subject={{ type: 'bridge', id: bridge.id }}
      action={text.common.delete}
      busy={change.isPending}
      error={change.error}
      onConfirm={() =>
        change.mutate(undefined, {
          onSuccess: () => {
            say(text.common.deleted(bridge.name))
            go('/paths/bridges')
          },
        })
      }
    />
  )
}
