// The mesh: the one that the gateway coordinates, with what each peer may route and the keys by which phones and laptops join, or
// the one that it is a node of.

import { useState } from 'react'
import { call, client, type Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { Link } from '@/session/link'
import { useFormAction } from '@/components/action'
import { answerOf, Page } from '@/components/answer'
import { Button } from '@/components/button'
import { Confirm } from '@/components/confirm'
import { Dialog } from '@/components/dialog'
import { Facts } from '@/components/facts'
import { Actions } from '@/components/menu'
import { Empty, LoadedSection } from '@/components/section'
import { StateWord, Tag, type State } from '@/components/state'
import { Table, type Column } from '@/components/table'
import { Age, Clock } from '@/components/time'
import { TwoLines } from '@/components/two-lines'
import { useText } from '@/text'
import { KeyForm } from './key-form'
import { isMember, Membership } from './membership'
import { RoutesForm } from './routes-form'

type Peer = Schemas['MeshPeer']
type Status = Schemas['MeshStatus']

const STATES: Record<Schemas['MeshState'], State> = {
  down: 'idle',
  connecting: 'unknown',
  up: 'ok',
  needs_login: 'degraded',
  needs_approval: 'degraded',
  error: 'down',
}

export default function Mesh() {
  const text = useText()
  const words = text.mesh
  const [adding, setAdding] = useState(false)
  const status = useGet('/mesh/status', {}, { every: 5000 })
  const peers = useGet('/mesh/peers', {}, { every: 5000 })
  const isOff = status.data?.data.state === 'down'
  const member = status.data ? isMember(status.data.data) : false
  return (
    <Page
      question={words.question}
      answer={answerOf(status, text, ({ state, peers: count }) =>
        state === 'down'
          ? member
            ? words.membership.off
            : words.off
          : words.sentence(count.online, count.total),
      )}
      actions={
        <Button kind="primary" needs="admin" disabled={isOff || member} onClick={() => setAdding(true)}>
          {words.key.title}
        </Button>
      }
    >
      <LoadedSection title={member ? words.membership.title : words.coordinator} query={status}>
        {(read) =>
          isMember(read) ? <Membership status={read} states={STATES} /> : <Coordinator status={read} />
        }
      </LoadedSection>
      <LoadedSection
        title={words.peers}
        query={peers}
        empty={<Empty>{member ? words.membership.empty : words.empty}</Empty>}
      >
        {(list) => <Peers list={list} />}
      </LoadedSection>
      <Dialog open={adding} onClose={() => setAdding(false)} title={words.key.title} wide>
        <KeyForm onClose={() => setAdding(false)} />
      </Dialog>
    </Page>
  )
}

function Coordinator({ status }: { status: Status }) {
  const words = useText().mesh
  const { state, coordinator, health } = status
  return (
    <>
      <Facts
        facts={[
          [
            words.state,
            <StateWord key="state" state={STATES[state]}>
              {words.states[state]}
            </StateWord>,
          ],
          [words.url, coordinator.url, 'mono'],
          health.length > 0 && [
            words.faults,
            <span key="faults" lang="en">
              {health.join(' ')}
            </span>,
          ],
        ]}
      />
      {state === 'down' ? (
        <p>
          <Link to="/system/settings" search={{ find: 'mesh.coordinator' }}>
            {words.settings}
          </Link>
        </p>
      ) : null}
    </>
  )
}

function Peers({ list }: { list: Peer[] }) {
  const words = useText().mesh
  const [removing, setRemoving] = useState<Peer | null>(null)
  const [routing, setRouting] = useState<Peer | null>(null)
  const columns = useColumns(setRouting, setRemoving)
  return (
    <>
      <Table label={words.peers} rows={list} id={({ id }) => id} columns={columns} />
      <RemoveDialog peer={removing} onClose={() => setRemoving(null)} />
      <Dialog open={routing !== null} onClose={() => setRouting(null)} title={words.routes.title}>
        {routing ? <RoutesForm peer={routing} onClose={() => setRouting(null)} /> : null}
      </Dialog>
    </>
  )
}

function useColumns(onRoutes: (peer: Peer) => void, onRemove: (peer: Peer) => void): Column<Peer>[] {
  const words = useText().mesh
  const { columns } = words
  return [
    {
      head: columns.peer,
      bare: true,
      cell: (peer) => (
        <TwoLines second={[peer.os, ...peer.ips].filter(Boolean).join(', ')}>
          <span className="med">{peer.name}</span>{' '}
          {peer.tags.map((tag) => (
            <Tag key={tag}>{tag}</Tag>
          ))}
        </TwoLines>
      ),
    },
    {
      head: columns.state,
      cell: ({ online, last_seen }) => (
        <TwoLines second={online || last_seen === null ? null : <Age time={last_seen} />}>
          <StateWord state={online ? 'ok' : 'idle'}>{online ? words.online : words.offline}</StateWord>
        </TwoLines>
      ),
    },
    {
      head: words.membership.path,
      cell: ({ connection }) => (connection === null ? '-' : words.membership.paths[connection]),
    },
    { head: columns.routes, cell: ({ routes }) => <Routes routes={routes} /> },
    {
      head: columns.expiry,
      cell: ({ key_expiry: end }) => (end === null ? words.never : <Clock time={end} />),
    },
    {
      numeric: true,
      cell: (peer) => (
        <Actions
          label={words.actionsFor(peer.name)}
          actions={[
            {
              id: 'routes',
              label: words.routes.title,
              needs: 'admin',
              disabled: peer.routes.length === 0 || peer.connection !== null,
              run: () => onRoutes(peer),
            },
            {
              id: 'remove',
              label: words.remove,
              needs: 'admin',
              disabled: peer.connection !== null,
              run: () => onRemove(peer),
            },
          ]}
        />
      ),
    },
  ]
}

function Routes({ routes }: { routes: Peer['routes'] }) {
  const words = useText().mesh
  if (routes.length === 0) return <>-</>
  const waiting = routes.filter(({ approved }) => !approved).length
  return (
    <TwoLines second={waiting > 0 ? words.waiting(waiting) : null}>
      {routes.map(({ cidr }) => cidr).join(', ')}
    </TwoLines>
  )
}

function RemoveDialog({ peer, onClose }: { peer: Peer | null; onClose: () => void }) {
  const text = useText()
  const words = text.mesh
  const remove = useFormAction(
    ({ id }: Peer) => call(client.DELETE('/mesh/peers/{id}', { params: { path: { id } } })),
    (_, { name }) => {
      onClose()
      return text.common.deleted(name)
    },
  )
  const name = peer?.name ?? ''
  return (
    <Confirm
      open={peer !== null}
      onClose={onClose}
      title={words.removeTitle(name)}
      consequence={words.removeConsequence}
      name={name}
      action={words.remove}
      busy={remove.busy}
      error={remove.error}
      onConfirm={() => {
        if (peer) remove.run(peer)
      }}
    />
  )
}
