// What is known of a tunnel: its facts, peers, policies, and its file.

import { useState } from 'react'
import type { Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { Link } from '@/session/link'
import { Button } from '@/components/button'
import { Copyable } from '@/components/copyable'
import { Facts } from '@/components/facts'
import { Loaded, Section } from '@/components/section'
import { StateWord } from '@/components/state'
import { Age } from '@/components/time'
import { Table } from '@/components/table'
import { useText } from '@/text'
import { formatAge, formatBytes, formatNumber } from '@/text/format'
import { TunnelState } from './tunnels'
import { peerFacts, stateOf, stateOfEgress } from './tunnel-state'

type Tunnel = Schemas['Tunnel']

export function TunnelFacts({ tunnel }: { tunnel: Tunnel }) {
  const text = useText()
  const detail = text.paths.detail
  const wireguard = tunnel.type === 'wireguard'
  const { usable } = stateOf(tunnel)
  return (
    <Facts
      facts={[
        [detail.status, <TunnelState key="state" tunnel={tunnel} />],
        [detail.health, tunnel.health ? (text.paths.healths[tunnel.health] ?? tunnel.health) : null],
        [detail.lastChange, tunnel.last_change ? <Age time={tunnel.last_change} /> : null],
        [detail.uptime, typeof tunnel.uptime_sec === 'number' ? formatAge(tunnel.uptime_sec, text) : null],
        !usable && [detail.lastError, tunnel.last_error],
        [detail.interface, tunnel.interface],
        [detail.endpoint, tunnel.endpoint_ip],
        [detail.exit, tunnel.exit_ip ?? <span className="dim">{detail.exitHint}</span>],
        [
          detail.total,
          tunnel.rx_bytes !== undefined && tunnel.tx_bytes !== undefined
            ? `${formatBytes(tunnel.rx_bytes)}, ${formatBytes(tunnel.tx_bytes)}`
            : null,
        ],
        [
          detail.latency,
          typeof tunnel.latency_ms === 'number' ? `${formatNumber(tunnel.latency_ms, 1)} ms` : null,
        ],
        [detail.loss, typeof tunnel.loss_pct === 'number' ? `${formatNumber(tunnel.loss_pct, 1)} %` : null],
        [detail.restarts, tunnel.restarts === undefined ? null : formatNumber(tunnel.restarts)],
        wireguard && [detail.addresses, tunnel.addresses.join(', ') || null],
        wireguard &&
          Boolean(tunnel.public_key) && [
            detail.publicKey,
            <Copyable key="key" value={tunnel.public_key ?? ''} label={detail.publicKey} />,
          ],
        !wireguard && [detail.remotes, tunnel.remotes.join(', ') || null],
        !wireguard && [detail.cipher, tunnel.cipher],
        [detail.mtu, tunnel.mtu ?? detail.mtuAuto],
        [detail.uplink, tunnel.uplink === 'auto' ? text.paths.form.auto : tunnel.uplink],
        wireguard && [detail.bridge, tunnel.bridge],
        tunnel.tags.length > 0 && [detail.tags, tunnel.tags.join(', ')],
        tunnel.notes !== '' && [detail.notes, tunnel.notes],
      ]}
    />
  )
}

export function Peers({ tunnel }: { tunnel: Tunnel }) {
  const text = useText()
  const detail = text.paths.detail
  return (
    <Table
      rows={tunnel.peers}
      id={(peer) => peer.public_key}
      columns={[
        {
          head: detail.peer,
          bare: true,
          cell: (peer) => (
            <code className="cut" title={peer.public_key}>
              {peer.public_key}
            </code>
          ),
        },
        { head: text.paths.form.peerFields.endpoint[0], cell: (peer) => peer.endpoint ?? '-' },
        { head: detail.allowed, cell: (peer) => peer.allowed_ips.join(', ') || '-' },
        {
          head: detail.handshake,
          cell: (peer) => {
            const { handshake } = peerFacts(peer)
            return <Age time={handshake} />
          },
        },
        {
          head: detail.total,
          numeric: true,
          cell: (peer) => {
            const { received, sent } = peerFacts(peer)
            return received === null || sent === null ? '-' : `${formatBytes(received)}, ${formatBytes(sent)}`
          },
        },
        { head: detail.preshared, cell: (peer) => (peer.has_preshared_key ? detail.set : text.common.none) },
        {
          head: detail.keepalive,
          numeric: true,
          cell: (peer) => text.common.seconds(peer.persistent_keepalive ?? tunnel.keepalive),
        },
      ]}
    />
  )
}

export function Using({ using, tunnel }: { using: Schemas['Egress'][]; tunnel: Tunnel }) {
  const text = useText()
  const detail = text.paths.detail
  const references = useGet(
    '/references/{type}/{id}',
    { path: { type: 'tunnel', id: tunnel.id } },
    { every: 60_000 },
  ).data?.data
  const named = Object.entries(references?.referenced_by ?? {}).filter(([, count]) => count > 0)
  return (
    <>
      {using.length > 0 ? (
        <Table
          rows={using}
          id={(each) => each.policy_id}
          columns={[
            {
              head: detail.policy,
              bare: true,
              cell: (each) => (
                <Link className="med" to={`/policies/${each.policy_id}`}>
                  {each.policy}
                </Link>
              ),
            },
            {
              head: text.paths.list.state,
              cell: (each) => (
                <StateWord state={stateOfEgress(each.state)}>
                  {text.paths.states[each.state] ?? each.state}
                </StateWord>
              ),
            },
            {
              head: detail.newFlows,
              cell: (each) => (each.active ? text.paths.list.active : text.paths.list.inactive),
            },
          ]}
        />
      ) : (
        <p className="mid">{detail.unused}</p>
      )}
      <p className="dim sm">
        {references === undefined
          ? null
          : named.length === 0
            ? detail.unreferenced
            : `${text.common.usedBy(references.total)} ${named
                .map(([kind, count]) => `${count} ${text.kinds[kind]?.[count === 1 ? 0 : 1] ?? kind}`)
                .join(', ')}`}
      </p>
    </>
  )
}

/** The file of the tunnel. It is read on demand. */
export function ConfigFile({ tunnel }: { tunnel: Tunnel }) {
  const text = useText()
  const detail = text.paths.detail
  const [open, setOpen] = useState(false)
  const config = useGet('/tunnels/{id}/config', { path: { id: tunnel.id } }, { enabled: open, every: false })
  return (
    <Section
      title={detail.config}
      hint={detail.configHint}
      actions={
        <Button size="small" onClick={() => setOpen(!open)}>
          {open ? detail.hideConfig : detail.showConfig}
        </Button>
      }
    >
      {open ? (
        <Loaded query={config} lines={8}>
          {(read) => <pre className="file">{read.config}</pre>}
        </Loaded>
      ) : null}
    </Section>
  )
}
