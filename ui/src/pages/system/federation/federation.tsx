// The federation: this gateway's key, the other gateways and what is exchanged with each, and what happened.

import { useState } from 'react'
import { call, client, type Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { Link, useGo } from '@/session/link'
import { say } from '@/session/toasts'
import { useAction } from '@/components/action'
import { answerOf, Page } from '@/components/answer'
import { Button } from '@/components/button'
import { Dialog } from '@/components/dialog'
import { Facts } from '@/components/facts'
import { LinkButton } from '@/components/link-button'
import { Empty, LoadedSection } from '@/components/section'
import { StateWord } from '@/components/state'
import { Table } from '@/components/table'
import { Age, Clock } from '@/components/time'
import { TwoLines } from '@/components/two-lines'
import { useText } from '@/text'
import { formatNumber } from '@/text/format'
import { ExchangeForm } from './exchange'
import { STATES } from './nodes'

type Peer = Schemas['FederationPeer']

export default function Federation() {
  const text = useText()
  const words = text.federation
  const go = useGo()
  const [exchanging, setExchanging] = useState(false)
  const status = useGet('/federation/status', {}, { every: 5000 })
  const peers = useGet('/federation/peers', {}, { every: 5000 })
  const events = useGet('/federation/recent-events', { query: { limit: 50 } }, { every: 5000 })
  return (
    <Page
      question={words.question}
      answer={answerOf(status, text, (read) => words.sentence(read.peers, read.received_objects))}
      actions={
        <>
          <Button kind="primary" needs="admin" onClick={() => setExchanging(true)}>
            {words.exchange.title}
          </Button>
          <LinkButton to="/system/federation/roles">{words.roles.title}</LinkButton>
        </>
      }
    >
      <LoadedSection
        title={words.peers}
        hint={words.peersHint}
        query={peers}
        empty={<Empty>{words.empty}</Empty>}
      >
        {(list) => <Peers list={list} />}
      </LoadedSection>
      <LoadedSection title={words.own} hint={words.ownHint} query={status}>
        {(read) => <Own status={read} />}
      </LoadedSection>
      <LoadedSection title={words.events} query={events} empty={<Empty>{words.noEvents}</Empty>}>
        {(list) => <Events list={list} />}
      </LoadedSection>
      <Dialog open={exchanging} onClose={() => setExchanging(false)} title={words.exchange.title} wide>
        <ExchangeForm
          onCancel={() => setExchanging(false)}
          onDone={(node) => go(`/system/federation/nodes/${node.id}`)}
        />
      </Dialog>
    </Page>
  )
}

function Own({ status }: { status: Schemas['FederationStatus'] }) {
  const words = useText().federation
  return (
    <Facts
      facts={[
        [words.words, status.fingerprint_words, 'mono'],
        [words.fingerprint, status.fingerprint, 'mono'],
        status.previous_fingerprint_words !== null && [
          words.previousWords,
          status.previous_fingerprint_words,
          'mono',
        ],
        [
          words.hub,
          <>
            {words.hubStates[status.bus.state]}
            {status.bus.error ? <span lang="en"> {status.bus.error}</span> : null}
          </>,
        ],
        [words.ownObjects, formatNumber(status.own_objects)],
        [words.receivedObjects, formatNumber(status.received_objects)],
      ]}
    />
  )
}

function Peers({ list }: { list: Peer[] }) {
  const words = useText().federation
  const { columns } = words
  const kinds = (all: Peer['offered']) => all.map((kind) => words.kinds[kind]).join(', ') || '-'
  return (
    <Table
      label={words.peers}
      rows={list}
      id={({ id }) => id}
      columns={[
        {
          head: columns.node,
          bare: true,
          cell: (peer) => (
            <TwoLines second={peer.url}>
              <Link className="med" to={`/system/federation/nodes/${peer.id}`}>
                {peer.name}
              </Link>
            </TwoLines>
          ),
        },
        {
          head: columns.status,
          cell: ({ status, errors }) => (
            <TwoLines second={errors[0] ? <span lang="en">{errors[0]}</span> : null}>
              <StateWord state={STATES[status]}>{words.statuses[status]}</StateWord>
            </TwoLines>
          ),
        },
        { head: columns.received, cell: ({ received }) => kinds(received) },
        { head: columns.offered, cell: ({ offered }) => kinds(offered) },
        { head: columns.objects, numeric: true, cell: ({ objects }) => formatNumber(objects) },
        { head: columns.synced, cell: ({ last_sync }) => <Age time={last_sync} /> },
        { cell: (peer) => (peer.received.length > 0 ? <PullButton peer={peer} /> : null) },
      ]}
    />
  )
}

/** Pulls from a node now. */
export function PullButton({ peer }: { peer: Pick<Peer, 'id' | 'name'> }) {
  const words = useText().federation
  const pull = useAction(
    () => call(client.POST('/federation/sync', { body: { peer: peer.id } })),
    ([result]) => {
      if (result?.error) say(words.failed(result.error), [])
      else return words.pulled(peer.name, result?.changed.map((kind) => words.kinds[kind]) ?? [])
    },
  )
  return (
    <Button size="small" needs="operator" does={pull}>
      {words.pull}
    </Button>
  )
}

function Events({ list }: { list: Schemas['FederationEvent'][] }) {
  const words = useText().federation
  return (
    <Table
      label={words.events}
      dense
      rows={list}
      id={({ id }) => String(id)}
      columns={[
        { head: words.columns.at, cell: ({ at }) => <Clock time={at} seconds /> },
        { head: words.columns.node, bare: true, cell: ({ node }) => node },
        {
          head: words.columns.event,
          cell: ({ kind, message }) => (
            <TwoLines second={<span lang="en">{message}</span>}>{words.eventKinds[kind]}</TwoLines>
          ),
        },
      ]}
    />
  )
}
