// What the daemon read in a file, without its keys, and what is to be looked at.

import type { Schemas } from '@/api/client'
import { Facts } from '@/components/facts'
import { Failure, Skeleton } from '@/components/section'
import { StateWord } from '@/components/state'
import { useText } from '@/text'
import type { TunnelImport } from './use-import'

type Tunnel = Schemas['Tunnel']

export function TunnelPreview({ of: { read: data, error, problem, login } }: { of: TunnelImport }) {
  const text = useText()
  const words = text.paths.import
  if (!data) {
    if (!error) return <Skeleton lines={6} />
    if (!problem || problem.fields.length === 0) return <Failure error={error} />
    return (
      <div className="err" role="alert">
        <p className="strong">{words.refused}</p>
        <ul>
          {problem.fields.map((field) => (
            <li key={field.path + field.message}>
              {field.path === 'config' ? null : <code>{field.path} </code>}
              {field.message}
            </li>
          ))}
        </ul>
      </div>
    )
  }
  const given = login.username !== '' && login.password !== ''
  const warnings = data.warnings.filter((each) => !(each.path === 'username' && given))
  return (
    <div className="preview" aria-live="polite">
      <TunnelSummary tunnel={data.data} />
      {warnings.length > 0 ? (
        <div className="preview__notes">
          <p className="strong">{words.problems}</p>
          <ul>
            {warnings.map((each) => (
              <li key={each.path + each.message}>{each.message}</li>
            ))}
          </ul>
        </div>
      ) : (
        <StateWord state="ok">{words.noProblems}</StateWord>
      )}
    </div>
  )
}

function TunnelSummary({ tunnel }: { tunnel: Tunnel }) {
  const text = useText()
  const words = text.paths.import
  const wireguard = tunnel.type === 'wireguard'
  const servers = wireguard ? tunnel.peers.map((peer) => peer.endpoint ?? '-') : tunnel.remotes
  const allowed = tunnel.peers.flatMap((peer) => peer.allowed_ips)
  const preshared = tunnel.peers.some((peer) => peer.has_preshared_key)
  return (
    <Facts
      facts={[
        [words.kind, text.paths.types[tunnel.type]],
        [words.server, servers.join(', ') || null],
        wireguard && [words.address, tunnel.addresses.join(', ') || null],
        wireguard && [words.allowed, allowed.join(', ') || null],
        wireguard && [words.keys, tunnel.has_private_key ? words.keysSet(preshared) : null],
        wireguard && [text.paths.detail.publicKey, <code key="key">{tunnel.public_key ?? '-'}</code>],
        tunnel.dns.length > 0 && [words.dns, tunnel.dns.join(', ')],
        Boolean(tunnel.cipher) && [words.cipher, tunnel.cipher],
        tunnel.mtu !== null && [words.mtu, String(tunnel.mtu)],
      ]}
    />
  )
}
