// One tunnel: whether it is up, its facts, peers, traffic, and what uses it.

import type { Schemas } from '@/api/client'
import { answerOf } from '@/components/answer'
import { useGet } from '@/api/query'
import { useTitle } from '@/session/crumb'
import { Link } from '@/session/link'
import { useSearchParams } from '@/session/search-params'
import { Button } from '@/components/button'
import { CaptureMenu, type CaptureOffer } from '@/components/capture-menu'
import { EditForm } from '@/components/form'
import { ObjectPage } from '@/components/object-page'
import { usePageId } from '@/components/page-id'
import { useObject, useObjectEdit } from '@/components/resource'
import { LoadedSection, Loaded, Section } from '@/components/section'
import { useAge } from '@/components/time'
import { useText } from '@/text'
import { TunnelSwitch } from './tunnel-actions'
import { useTunnelDeletion } from './tunnel-delete'
import { ConfigFile, Peers, TunnelFacts, Using } from './tunnel-facts'
import { TunnelFields } from './tunnel-fields'
import { TunnelHistory } from './tunnel-past'
import { allTunnels } from './tunnel-form'
import { lastHandshake, remoteOf, stateOf } from './tunnel-state'
import { useTunnelCounters } from './tunnels'

type Tunnel = Schemas['Tunnel']

export default function TunnelPage() {
  const text = useText()
  const id = usePageId()
  const tunnel = useObject(allTunnels, id, { every: 3000 })
  const egress = useGet('/tunnels/egress', {}, { every: 3000 })
  const [search, change] = useSearchParams()
  const shown = tunnel.data?.data
  useTitle(shown?.name)
  const deletion = useTunnelDeletion(shown)
  useTunnelCounters(shown ? [shown] : undefined, tunnel.dataUpdatedAt)
  const editing = search.edit !== undefined
  const using = egress.data?.data.filter((each) => each.tunnel_id === id)
  const detail = text.paths.detail
  return (
    <ObjectPage
      question={shown ? detail.question(shown.name) : text.paths.question}
      answer={answerOf(tunnel, text, (read) => (
        <Sentence tunnel={read} using={using} />
      ))}
      actions={
        shown ? (
          <>
            <TunnelSwitch tunnel={shown} />
            <CaptureMenu label={text.captures.capture} offers={offersOf(shown)} />
            <Button
              kind="primary"
              needs="operator"
              onClick={() => change({ edit: editing ? undefined : 'yes' })}
            >
              {editing ? text.common.close : text.common.edit}
            </Button>
          </>
        ) : null
      }
      deletion={deletion}
    >
      {editing && tunnel.data ? (
        <Section title={detail.edit}>
          <Edit
            key={id}
            tunnel={tunnel.data.data}
            etag={tunnel.data.etag}
            onDone={() => change({ edit: undefined })}
          />
        </Section>
      ) : null}
      <Loaded query={tunnel} lines={8}>
        {(read) => <Sections tunnel={read} />}
      </Loaded>
    </ObjectPage>
  )
}

/** Captures inside the tunnel, and of what carries it. */
function offersOf({ interface: name, type }: Tunnel): CaptureOffer[] {
  const inside = name === null || name === undefined ? [] : ([undefined, 'dns', 'icmp'] as const)
  return [...inside.map((preset) => ({ interface: name ?? '', preset })), { interface: 'any', preset: type }]
}

function Sections({ tunnel }: { tunnel: Tunnel }) {
  const { detail } = useText().paths
  const egress = useGet('/tunnels/egress', {}, { every: 3000 })
  return (
    <>
      <TunnelHistory tunnel={tunnel} />
      <div className="cols cols--2">
        <Section title={detail.facts}>
          <TunnelFacts tunnel={tunnel} />
        </Section>
        <LoadedSection title={detail.policies} hint={detail.policiesHint} query={egress}>
          {(all) => <Using using={all.filter((each) => each.tunnel_id === tunnel.id)} tunnel={tunnel} />}
        </LoadedSection>
      </div>
      {tunnel.type === 'wireguard' ? (
        <Section title={detail.peers}>
          <Peers tunnel={tunnel} />
        </Section>
      ) : null}
      {tunnel.pushed && tunnel.pushed.length > 0 ? (
        <Section title={detail.pushed}>
          <p className="mono sm">{tunnel.pushed.join(', ')}</p>
        </Section>
      ) : null}
      <ConfigFile tunnel={tunnel} />
    </>
  )
}

function Sentence({ tunnel, using }: { tunnel: Tunnel; using: Schemas['Egress'][] | undefined }) {
  const text = useText()
  const detail = text.paths.detail
  const { word } = stateOf(tunnel)
  const named = text.paths.states[word] ?? word
  const handshake = useAge(lastHandshake(tunnel))
  const changed = useAge(tunnel.last_change)
  const remote = remoteOf(tunnel) ?? '-'
  const reason = tunnel.last_error ?? detail.noReason
  const main =
    word === 'up'
      ? tunnel.type === 'wireguard'
        ? detail.up(remote, lastHandshake(tunnel) ? text.common.ago(handshake) : handshake)
        : detail.upOpenvpn(remote, changed)
      : word === 'degraded' || word === 'unhealthy'
        ? detail.degraded(reason)
        : word === 'taken_down'
          ? detail.takenDown(text.common.ago(changed))
          : word === 'disabled'
            ? detail.disabled
            : `${detail.notUp(named, changed)} ${tunnel.last_error ? detail.reason(tunnel.last_error) : ''}`
  return (
    <>
      {main}{' '}
      {using === undefined ? null : using.length > 0 ? (
        <Link to="/policies">{detail.used(using.length)}</Link>
      ) : (
        detail.unused
      )}
    </>
  )
}

interface EditProps {
  tunnel: Tunnel
  etag: string | null
  onDone: () => void
}

function Edit({ tunnel, etag, onDone }: EditProps) {
  const edit = useObjectEdit(allTunnels, { data: tunnel, etag }, { onSaved: onDone })
  return (
    <EditForm edit={edit} onCancel={onDone}>
      <TunnelFields edit={edit} type={tunnel.type} />
    </EditForm>
  )
}
