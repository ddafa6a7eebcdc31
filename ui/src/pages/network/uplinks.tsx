// The uplinks: which one is used, since when, and why it changed.

import type { UseQueryResult } from '@tanstack/react-query'
import type { Answer, Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { Link } from '@/session/link'
import { useSearchParams } from '@/session/search-params'
import { Page } from '@/components/answer'
import { LinkButton } from '@/components/link-button'
import { LoadedSection, Loaded } from '@/components/section'
import { Segmented } from '@/components/segmented'
import { useNow } from '@/components/time'
import { clockOf } from '@/components/time-drawing'
import { useText } from '@/text'
import { formatTime } from '@/text/format'
import { CaptiveCheck } from './captive'
import { beginOf, firstKnown, nameOf, nameOfHealth, numberChanges } from './timeline'
import { LatencySection, TimelineSection } from './timeline-section'
import { Decisions, HealthTable, ManagerFacts } from './uplinks-facts'

type Manager = Schemas['WanManager']
type Uplinks = Schemas['WanUplinks']
type Health = Schemas['UplinkHealth']

const HOUR = 3_600_000
const DAY = 24 * HOUR
const RANGES: Record<string, number> = { hour: HOUR, day: DAY, week: 7 * DAY }

export default function UplinksPage() {
  const text = useText()
  const words = text.network.uplinks
  const [search, change] = useSearchParams()
  const range = search.range !== undefined && search.range in RANGES ? search.range : 'day'
  const manager = useGet('/system/wan-manager', {}, { every: 5000 })
  const uplinks = useGet('/system/wan-uplinks', {}, { every: 15_000 })
  const health = useGet('/system/wan-health', {}, { every: 5000 })
  const failed = manager.error ?? uplinks.error
  return (
    <Page
      question={words.question}
      actions={
        <>
          <Segmented
            label={words.range}
            value={range}
            options={Object.entries(words.ranges)}
            onChange={(next) => change({ range: next === 'day' ? undefined : next })}
          />
          <LinkButton kind="primary" needs="operator" to="/network/uplinks/edit">
            {words.edit}
          </LinkButton>
        </>
      }
      answer={
        failed ? (
          text.common.unreachable
        ) : manager.data && uplinks.data ? (
          <Sentence manager={manager.data.data} uplinks={uplinks.data.data} />
        ) : (
          text.common.loading
        )
      }
    >
      <Timeline range={range} manager={manager} uplinks={uplinks} health={health.data?.data} />
      <LoadedSection title={words.decisions} hint={words.decisionsHint} query={manager}>
        {(read) => <Decisions manager={read} />}
      </LoadedSection>
      <LoadedSection title={words.health} hint={words.healthHint} query={health}>
        {(read) => <HealthTable health={read} />}
      </LoadedSection>
      <LoadedSection title={words.manager} query={manager}>
        {(read) => <ManagerFacts manager={read} />}
      </LoadedSection>
      <CaptiveCheck />
    </Page>
  )
}

interface TimelineProps {
  range: string
  manager: UseQueryResult<Answer<Manager>>
  uplinks: UseQueryResult<Answer<Uplinks>>
  health: Health[] | undefined
}

/** What the uplinks were, over the chosen time. */
function Timeline({ range, manager, uplinks, health }: TimelineProps) {
  const recorded = useGet(
    '/system/wan-health',
    { query: range === 'hour' ? { history: true, minutes: 60 } : { history: true } },
    { every: 60_000 },
  )
  return (
    <Loaded query={manager} lines={6}>
      {(read) => (
        <Loaded query={uplinks} lines={6}>
          {(list) => (
            <Loaded query={recorded} lines={6}>
              {(past) => (
                <Past
                  manager={read}
                  uplinks={list}
                  health={health ?? past}
                  recorded={past}
                  range={RANGES[range] ?? DAY}
                />
              )}
            </Loaded>
          )}
        </Loaded>
      )}
    </Loaded>
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
  const [before, times, after] = words.switched(
    switches.length,
    first ? formatTime(first) : '',
    // The list below has the evidence of the reason.
    (switches.at(-1)?.decision.reason ?? '').split(': ')[0] ?? '',
  )
  const agrees = manager.kernel?.agrees ?? (last ? last.kernel_agrees_at !== null : null)
  return (
    <>
      {words.on}
      <Link to={`/network/interfaces/${interfaceName ?? ''}`}>{manager.active}</Link>
      {since ? words.since(formatTime(since)) : words.onNow}
      {manager.balanced ? words.balanced(manager.egress_legs.map((leg) => leg.uplink).join(', ')) : null}
      {first ? (
        <>
          {before}
          <a href="#decisions">{times}</a>
          {after}{' '}
        </>
      ) : null}
      {agrees === null ? null : agrees ? words.agrees : words.agreesNot}
      {observing}
    </>
  )
}

interface PastProps {
  manager: Manager
  uplinks: Uplinks
  health: Health[]
  /** With their history. */
  recorded: Health[]
  range: number
}

/** The timeline and the latencies, on one axis. */
function Past({ manager, uplinks, health, recorded, range }: PastProps) {
  const words = useText().network.uplinks
  const second = useNow()
  // The drawing moves on every five seconds, not with each second.
  const now = Math.ceil(second / 5000) * 5000
  const spans = new Map(recorded.map((each) => [nameOfHealth(each), each.history?.spans ?? []]))
  const known = { manager, health, recorded: spans }
  const first = firstKnown(known)
  const from = beginOf(first, range, now)
  const hint =
    first !== null && first > now - range
      ? words.knownSince(clockOf(first))
      : range > DAY
        ? words.olderStates
        : null
  return (
    <>
      <TimelineSection
        input={{ ...known, uplinks: uplinks.uplinks, from, now }}
        uplinks={uplinks}
        health={health}
        hint={hint}
      />
      <LatencySection recorded={recorded} health={health} from={from} now={now} />
    </>
  )
}
