// The uplinks: which one is active, what the probes say, and the last decision.

import type { Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { Link } from '@/app/link'
import { Empty, Loaded, Section } from '@/components/section'
import { StateWord } from '@/components/state'
import { Age } from '@/components/time'
import { useText } from '@/text'
import { formatNumber, formatTime } from '@/text/format'
import { uplinkState } from './flow-model'

export function UplinkStrip() {
  const text = useText()
  const query = useGet('/system/wan-health', {}, { every: 5000 })
  const manager = useGet('/system/wan-manager', {}, { every: 15_000 }).data?.data
  const decision = manager?.decisions[0]
  return (
    <Section
      title={text.overview.uplinks.title}
      actions={
        <Link className="link" to="/network">
          {text.overview.uplinks.timeline}
        </Link>
      }
    >
      <Loaded
        query={query}
        isEmpty={(uplinks) => uplinks.length === 0}
        empty={<Empty>{text.overview.uplinks.empty}</Empty>}
      >
        {(uplinks) => (
          <ul className="rows">
            {uplinks.map((uplink) => (
              <UplinkRow
                key={uplink.uplink}
                uplink={uplink}
                // A single uplink has no manager: the main routing table decides.
                active={uplink.uplink === manager?.active || uplinks.length === 1}
                manager={manager}
              />
            ))}
          </ul>
        )}
      </Loaded>
      {decision ? (
        <p className="sm dim">
          {text.overview.uplinks.lastSwitch}, <Age time={decision.time} />: {decision.reason}
        </p>
      ) : null}
    </Section>
  )
}

interface RowProps {
  uplink: Schemas['UplinkHealth']
  active: boolean
  manager: Schemas['WanManager'] | undefined
}

function UplinkRow({ uplink, active, manager }: RowProps) {
  const text = useText()
  const words = text.overview.uplinks
  const chosen = manager?.active === uplink.uplink
  const since = chosen
    ? manager.decisions.find((each) => each.applied && each.to === uplink.uplink)
    : undefined
  const pin = manager?.flap_pins.find((each) => each.uplink === uplink.uplink)
  const word =
    uplink.state === 'online'
      ? active
        ? since
          ? words.activeSince(formatTime(since.time))
          : words.active
        : words.standby
      : (words.words[uplink.state] ?? uplink.state)
  const measured = [
    uplink.latency_ms === null ? null : `${formatNumber(uplink.latency_ms, 0)} ms`,
    uplink.loss_pct === null ? null : words.loss(formatNumber(uplink.loss_pct, 0)),
  ].filter(Boolean)
  const facts = [
    measured.length > 0 ? measured.join(', ') : words.notMeasured,
    pin ? words.pinned(formatTime(pin.pinned_until)) : null,
    since?.kernel_agrees_at ? words.kernelAgrees : null,
    uplink.public_ip,
  ].filter(Boolean)
  return (
    <li>
      <div className="sec__h">
        <Link className="med" to="/network">
          {uplink.uplink}
        </Link>
        <span className="r">
          <StateWord state={uplinkState(uplink, active)}>{word}</StateWord>
        </span>
      </div>
      <span className="sm dim">{facts.join(', ')}</span>
    </li>
  )
}
