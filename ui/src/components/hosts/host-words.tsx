// Parts of a host in words.

import { TwoLines } from '@/components/two-lines'
import { useText } from '@/text'
import { formatBits } from '@/text/format'
import { StateWord, Tag } from '@/components/state'
import { Age } from '@/components/time'
import { pathState, type Host } from './hosts'

/** What a name and a MAC address cannot say. */
export function HostTags({ host }: { host: Host }) {
  const text = useText()
  return (
    <>
      {host.randomized_mac ? (
        <span title={text.hosts.randomizedHint}>
          <Tag>{text.hosts.randomized}</Tag>
        </span>
      ) : null}
      {host.confirmed ? null : (
        <span title={text.hosts.unconfirmedHint}>
          <Tag kind="pending">{text.hosts.unconfirmed}</Tag>
        </span>
      )}
    </>
  )
}

/** The way of a host's traffic to the internet. */
export function HostPath({ host }: { host: Host }) {
  const text = useText()
  const { path } = host
  if (!path)
    return (
      <span className="dim" title={text.hosts.notForwardedHint}>
        {text.hosts.notForwarded}
      </span>
    )
  const by = path.policy?.name ?? null
  return (
    <span className="two" title={path.sentence}>
      <StateWord state={pathState(host)}>{text.hosts.treatments[path.treatment]}</StateWord>
      {by ? <small>{by}</small> : null}
    </span>
  )
}

/** What a host transfers now, in both directions. */
export function HostRate({ host }: { host: Host }) {
  const text = useText()
  const { rate } = host
  if (!rate)
    return (
      <span className="dim" title={text.hosts.rateUnknown}>
        -
      </span>
    )
  return (
    <span className="two" title={text.hosts.rateHint}>
      <span>{text.hosts.receives(formatBits(rate.received_bps))}</span>
      <small>{text.hosts.sends(formatBits(rate.sent_bps))}</small>
    </span>
  )
}

/** Whether a host is there, and when it was seen. */
export function HostSeen({ host }: { host: Host }) {
  const text = useText()
  return (
    <TwoLines
      second={
        <>
          {text.hosts.firstSeen} <Age time={host.first_seen} />
        </>
      }
    >
      {host.online ? <StateWord state="ok">{text.hosts.online}</StateWord> : <Age time={host.last_seen} />}
    </TwoLines>
  )
}
