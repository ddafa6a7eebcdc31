// The uplinks: which one is active, what the probes say, the states of the last hours, and the last decision.

import { useId } from 'react'
import type { Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { Link } from '@/session/link'
import { English } from '@/components/said'
import { Empty, Loaded, Section } from '@/components/section'
import { StateWord } from '@/components/state'
import { Age } from '@/components/time'
import { useText } from '@/text'
import { formatAge, formatNumber, formatTime } from '@/text/format'
import { uplinkState } from './flow-model'
import { bandsOf, untilNow, type Span } from './minutes'

/** Time that the strips of states show. */
const HOURS = 12

export function UplinkStrip() {
  const text = useText()
  const query = useGet('/system/wan-health', {}, { every: 30_000 })
  const manager = useGet('/system/wan-manager', {}, { every: 30_000 }).data?.data
  const recorded = useGet(
    '/system/wan-health',
    { query: { history: true, minutes: HOURS * 60 } },
    { every: 60_000 },
  ).data?.data
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
      <Loaded query={query} empty={<Empty>{text.overview.uplinks.empty}</Empty>}>
        {(uplinks) => (
          <ul className="rows">
            {uplinks.map((uplink) => (
              <UplinkRow
                key={uplink.uplink}
                uplink={uplink}
                // A single uplink has no manager: the main routing table decides.
                active={uplink.uplink === manager?.active || uplinks.length === 1}
                manager={manager}
                spans={recorded?.find((each) => each.uplink === uplink.uplink)?.history?.spans ?? []}
              />
            ))}
          </ul>
        )}
      </Loaded>
      {decision ? (
        <p className="sm dim">
          {text.overview.uplinks.lastSwitch}, <Age time={decision.time} />:{' '}
          <English>{decision.reason}</English>
        </p>
      ) : null}
    </Section>
  )
}

interface RowProps {
  uplink: Schemas['UplinkHealth']
  active: boolean
  manager: Schemas['WanManager'] | undefined
  spans: readonly Span[]
}

function UplinkRow({ uplink, active, manager, spans }: RowProps) {
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
        <Link className="med" to={`/network/interfaces/${encodeURIComponent(uplink.interface)}`}>
          {uplink.uplink}
        </Link>
        <span className="r">
          <StateWord state={uplinkState(uplink, active)}>{word}</StateWord>
        </span>
      </div>
      <Bands
        spans={untilNow(spans, {
          state: uplink.state,
          active,
          since: uplink.since,
          at: uplink.checked_at,
        })}
      />
      <span className="sm dim">{facts.join(', ')}</span>
    </li>
  )
}

/** The states of the last hours in a strip, as long as the daemon has recorded them. */
function Bands({ spans }: { spans: readonly Span[] }) {
  const text = useText()
  const id = useId()
  const first = spans[0]
  const last = spans.at(-1)
  if (!first || !last) return null
  const [from, to] = [Date.parse(first.from), Date.parse(last.to)]
  const bands = bandsOf(spans, from, to, 240)
  const words = text.overview.uplinks.band(formatTime(first.from), formatAge((to - from) / 1000, text))
  return (
    <svg
      className="chart wan band"
      viewBox="0 0 240 10"
      preserveAspectRatio="none"
      role="img"
      aria-label={words}
    >
      <title>{words}</title>
      <defs>
        <pattern id={id} width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
          <path className="hx" d="M0 0V5" strokeWidth="2" />
        </pattern>
      </defs>
      {bands.map((band) => (
        <rect
          key={band.x}
          className={`seg-${band.kind}`}
          x={band.x.toFixed(1)}
          y="1"
          width={band.width.toFixed(1)}
          height="8"
          rx="2"
          style={band.kind === 'dg' ? { fill: `url(#${id})` } : undefined}
        />
      ))}
    </svg>
  )
}
