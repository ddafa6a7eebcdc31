// The uplinks: which one is used, since when, and why it changed.

import { useState } from 'react'
import type { Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { Link, useGo } from '@/app/link'
import { useSearchParams } from '@/app/search-params'
import { Answer, Tabs } from '@/components/answer'
import { Button } from '@/components/button'
import { Loaded, Section } from '@/components/section'
import { Segmented } from '@/components/segmented'
import { useNow } from '@/components/time'
import { useText } from '@/text'
import { formatNumber, formatTime } from '@/text/format'
import { CaptiveCheck } from './captive'
import { network } from './entry'
import { Decisions, HealthTable, Latencies, ManagerFacts } from './uplinks-facts'
import { beginOf, nameOf, numberChanges, timelineOf } from './timeline'
import { TimelineChart } from './timeline-chart'
import { useSeen } from './observed'

type Manager = Schemas['WanManager']
type Uplinks = Schemas['WanUplinks']

const HOUR = 3_600_000
const RANGES: Record<string, number> = { hour: HOUR, day: 24 * HOUR, week: 7 * 24 * HOUR }

export default function UplinksPage() {
  const text = useText()
  const go = useGo()
  const words = text.network.uplinks
  const manager = useGet('/system/wan-manager', {}, { every: 5000 })
  const uplinks = useGet('/system/wan-uplinks', {}, { every: 15_000 })
  const health = useGet('/system/wan-health', {}, { every: 5000 })
  const seen = useSeen(health.data?.data, health.dataUpdatedAt)
  const failed = manager.error ?? uplinks.error
  return (
    <>
      <Answer
        question={words.question}
        actions={
          <Button kind="primary" needs="operator" onClick={() => go('/network/uplinks/edit')}>
            {words.edit}
          </Button>
        }
      >
        {failed ? (
          text.network.unknownAnswer
        ) : manager.data && uplinks.data ? (
          <Sentence manager={manager.data.data} uplinks={uplinks.data.data} />
        ) : (
          text.common.loading
        )}
      </Answer>
      <Tabs entry={network} />
      <Loaded query={manager} lines={6}>
        {(read) => (
          <Loaded query={uplinks} lines={6}>
            {(list) => (
              <>
                <TimelineSection
                  manager={read}
                  uplinks={list}
                  health={health.data?.data ?? []}
                  observed={seen.states}
                />
                <Section title={words.decisions} hint={words.decisionsHint}>
                  <Decisions manager={read} />
                </Section>
              </>
            )}
          </Loaded>
        )}
      </Loaded>
      <Section title={words.health} hint={words.healthHint}>
        <Loaded query={health}>{(read) => <HealthTable health={read} />}</Loaded>
      </Section>
      <Section title={words.latency} hint={words.latencyHint}>
        <Loaded query={health}>{(read) => <Latencies health={read} seen={seen} />}</Loaded>
      </Section>
      <Section title={words.manager}>
        <Loaded query={manager}>{(read) => <ManagerFacts manager={read} />}</Loaded>
      </Section>
      <CaptiveCheck />
    </>
  )
}

function Sentence({ manager, uplinks }: { manager: Manager; uplinks: Uplinks }) {
  const text = useText()
  const words = text.network.uplinks
  const enabled = uplinks.uplinks.filter((uplink) => uplink.enabled)
  const changes = numberChanges(manager.decisions)
  const last = changes.at(-1)?.decision
  const observing = manager.mode === 'manual' ? ` ${words.observing}` : ''
  if (enabled.length === 0) return <>{words.none}</>
  if (manager.active === null) {
    const only = enabled[0]
    if (enabled.length > 1 || !only) return <>{words.undecided + observing}</>
    const leg = manager.egress_legs.find((each) => each.uplink === nameOf(only))
    const [link, rest] = words.single(nameOf(only))
    return (
      <>
        <Link to={`/network/interfaces/${only.interface}`}>{link}</Link>
        {rest} {leg ? (leg.installed ? words.singleRoute : words.singleNoRoute) : null}
      </>
    )
  }
  const interfaceName = uplinks.uplinks.find((each) => nameOf(each) === manager.active)?.interface
  const since = last && last.to === manager.active ? last.time : null
  const switches = changes.filter(({ decision }) => decision.from !== null)
  const first = switches[0]?.decision.time
  const [times, stop] = words.changed(switches.length)
  return (
    <>
      {words.on}
      <Link to={`/network/interfaces/${interfaceName ?? ''}`}>{manager.active}</Link>
      {since ? words.since(formatTime(since)) : words.onNow}
      {manager.balanced ? words.balanced(manager.egress_legs.map((leg) => leg.uplink).join(', ')) : null}
      {first ? (
        <>
          {words.switched(formatTime(first))}
          <a href="#decisions">{times}</a>
          {stop}{' '}
        </>
      ) : null}
      {last ? `${words.lastReason(last.reason)} ` : null}
      {last ? (last.kernel_agrees_at ? words.agrees : words.agreesNot) : null}
      {observing}
    </>
  )
}

interface TimelineProps {
  manager: Manager
  uplinks: Uplinks
  health: Schemas['UplinkHealth'][]
  observed: ReturnType<typeof useSeen>['states']
}

function TimelineSection({ manager, uplinks, health, observed }: TimelineProps) {
  const text = useText()
  const words = text.network.uplinks
  const [search, change] = useSearchParams()
  const second = useNow()
  // The drawing moves on every five seconds, not with each second.
  const now = Math.ceil(second / 5000) * 5000
  const range = search.range !== undefined && search.range in RANGES ? search.range : 'day'
  const [opened] = useState(() => Date.now())
  const seen = observed.length > 0 ? observed : [{ at: opened, states: {} }]
  const input = { uplinks: uplinks.uplinks, manager, health, observed: seen, now }
  const from = beginOf(input, RANGES[range] ?? 24 * HOUR)
  const timeline = timelineOf({ ...input, from })
  return (
    <Section
      title={words.timeline}
      hint={words.timelineHint}
      actions={
        <Segmented
          label={words.range}
          value={range}
          options={Object.entries(words.ranges)}
          onChange={(next) => change({ range: next === 'day' ? undefined : next })}
        />
      }
    >
      <TimelineChart
        timeline={timeline}
        from={from}
        now={now}
        subOf={(name) => {
          const uplink = uplinks.uplinks.find((each) => nameOf(each) === name)
          return uplink ? words.priority(uplink.interface, uplink.priority, uplink.metered) : null
        }}
        noteOf={(name) => {
          const own = health.find((each) => (each.uplink || each.interface) === name)
          if (!own) return null
          if (typeof own.latency_ms === 'number') return `${formatNumber(own.latency_ms)} ms`
          return own.checked_at === null ? words.notProbed : null
        }}
      />
    </Section>
  )
}
