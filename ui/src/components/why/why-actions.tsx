// What one can do about a decision, and its details.

import { useState, type ReactNode } from 'react'
import { call, client, type Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { say } from '@/session/toasts'
import { Button, IconButton } from '@/components/button'
import { CaptureMenu } from '@/components/capture-menu'
import { copyText } from '@/components/copy'
import { ExceptionDialog } from '@/components/exceptions/exception-dialog'
import { Facts } from '@/components/facts'
import { Icon } from '@/components/icons'
import { English } from '@/components/said'
import { useNow } from '@/components/time'
import { useAction } from '@/components/action'
import { useText } from '@/text'
import { formatTime } from '@/text/format'
import type { Evaluation } from './evaluate'
import { commandOf, type PacketQuery } from './query'

interface Props {
  device: { id: string; name: string }
  packet: PacketQuery
  evaluation: Evaluation | undefined
  children?: ReactNode
}

/** Kinds of packets that tell most about a device. */
const PRESETS = [undefined, 'dns', 'dns-bypass', 'encrypted-dns', 'tls-handshake', 'quic'] as const

export function WhyActions({ device, packet, evaluation, children }: Props) {
  const text = useText()
  const [dialog, setDialog] = useState<'temporary-direct' | 'quarantine' | null>(null)
  const blocked = evaluation?.decision === 'block'
  return (
    <>
      {blocked ? <WaysOut evaluation={evaluation} onAllow={() => setDialog('temporary-direct')} /> : null}
      <div className="btns">
        {blocked ? null : (
          <Button size="small" icon="clock" needs="operator" onClick={() => setDialog('temporary-direct')}>
            {text.why.allow}
          </Button>
        )}
        <Button size="small" icon="lock" needs="operator" onClick={() => setDialog('quarantine')}>
          {text.exception.types.quarantine}
        </Button>
        <CaptureMenu
          label={text.why.capture}
          offers={PRESETS.map((preset) => ({ device: device.id, preset }))}
          small
        />
      </div>
      {evaluation ? <Details evaluation={evaluation}>{children}</Details> : null}
      <Command line={commandOf(packet, device.name, location.origin)} />
      <ExceptionDialog
        open={dialog !== null}
        onClose={() => setDialog(null)}
        device={device}
        type={dialog ?? 'temporary-direct'}
        minutes={60}
      />
    </>
  )
}

function WaysOut({ evaluation, onAllow }: { evaluation: Evaluation; onAllow: () => void }) {
  const text = useText()
  const now = useNow()
  const tunnels = useGet('/tunnels', {}, { every: 3000 }).data?.data
  const egress = useGet('/tunnels/egress').data?.data
  const down = evaluation.hops.find((hop) => !hop.usable && hop.type === 'vpn')
  const tunnel = tunnels?.find((each) => each.name === down?.target)
  const users = new Set(
    (egress ?? []).filter((each) => each.tunnel === tunnel?.name).map((each) => each.policy),
  )
  const up = useAction(
    ({ id }: Schemas['Tunnel']) => call(client.POST('/tunnels/{id}/up', { params: { path: { id } } })),
    (_, { name }) => text.overview.reconnecting(name),
  )
  return (
    <div className="box">
      <h2>{tunnel ? text.why.twoWays : text.why.wayOut}</h2>
      {tunnel ? (
        <div className="opt">
          <h3>{text.why.fixHop}</h3>
          {users.size > 0 ? <p className="sm mid">{text.why.usedBy(tunnel.name, [...users])}</p> : null}
          <Button
            kind="primary"
            icon="refresh"
            needs="operator"
            busy={up.busy}
            onClick={() => up.run(tunnel)}
          >
            {text.overview.reconnect(tunnel.name)}
          </Button>
        </div>
      ) : null}
      <div className="opt">
        <h3>
          {tunnel ? '2. ' : ''}
          {text.why.allowTitle}
        </h3>
        <p className="sm mid">{text.why.allowEffect(formatTime(new Date(now + 3_600_000).toISOString()))}</p>
        <Button icon="clock" needs="operator" onClick={onAllow}>
          {text.why.allow}
        </Button>
      </div>
    </div>
  )
}

function Fold({
  title,
  hint,
  open,
  children,
}: {
  title: string
  hint: string
  open?: boolean
  children: ReactNode
}) {
  return (
    <details className="fold" open={open}>
      <summary>
        <Icon name="right" />
        {title} <span className="dim">{hint}</span>
      </summary>
      <div>{children}</div>
    </details>
  )
}

function Details({ evaluation, children }: { evaluation: Evaluation; children?: ReactNode }) {
  const text = useText()
  const { effective } = evaluation
  const { ipv4, ipv6 } = evaluation.families
  const same = ipv4 && ipv6 && JSON.stringify(ipv4.kernel) === JSON.stringify(ipv6.kernel)
  const kernels = same
    ? ([['', ipv4.kernel]] as const)
    : ([
        ['IPv4', ipv4?.kernel],
        ['IPv6', ipv6?.kernel],
      ] as const)
  return (
    <div>
      <Fold title="DNS" hint="" open>
        <p className="mid">{effective.dns ? <English>{effective.dns}</English> : text.common.noData}</p>
      </Fold>
      <Fold title={text.why.privacy} hint={effective.privacy_class ?? text.common.none}>
        <Facts
          facts={[
            [text.why.privacyClass, effective.privacy_class],
            [text.why.failPolicyLabel, effective.fail_policy],
          ]}
        />
      </Fold>
      <Fold title={text.why.kernel} hint={evaluation.kernel.mark ?? text.why.dropped} open>
        {kernels.map(([name, kernel]) =>
          kernel ? (
            <div key={name}>
              {name ? <p className="dim sm">{name}</p> : null}
              <Facts
                facts={[
                  [text.why.mark, <code key="m">{kernel.mark ?? text.why.dropped}</code>],
                  [text.why.table, <code key="t">{kernel.table ?? '-'}</code>],
                  [text.why.leg, <code key="l">{kernel.leg ?? '-'}</code>],
                  [text.why.rank, <code key="r">{kernel.rank ?? '-'}</code>],
                ]}
              />
            </div>
          ) : null,
        )}
      </Fold>
      {children ? (
        <Fold title={text.why.device} hint={evaluation.device.status ?? '-'}>
          {children}
        </Fold>
      ) : null}
      <Fold title={text.why.trace} hint={String(evaluation.trace.length)}>
        <ol className="steps-list">
          {evaluation.trace.map((step, index) => (
            <li key={index} lang="en">
              {step}
            </li>
          ))}
        </ol>
      </Fold>
    </div>
  )
}

function Command({ line }: { line: string }) {
  const text = useText()
  return (
    <div className="sec">
      <span className="dim sm">{text.why.terminal}</span>
      <div className="cmd">
        <code>{line}</code>
        <IconButton
          icon="copy"
          small
          label={text.why.copyCommand}
          onClick={() => void copyText(line).then((copied) => (copied ? say(text.common.copied) : undefined))}
        />
      </div>
    </div>
  )
}
