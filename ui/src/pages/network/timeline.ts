// The layout of the timeline of uplinks: bands of time, and markers at the changes of the active uplink.

import type { Schemas } from '@/api/client'

export type BandKind =
  'active' | 'standby' | 'degraded' | 'offline' | 'captive' | 'held' | 'disabled' | 'only'

/** State of an uplink at a read of this tab. */
export interface Observation {
  /** Time in milliseconds. */
  at: number
  states: Readonly<Record<string, string>>
}

export interface TimelineInput {
  uplinks: readonly { name: string; interface: string; enabled: boolean }[]
  manager: Pick<Schemas['WanManager'], 'active' | 'decisions' | 'flap_pins' | 'egress_legs'>
  health: readonly Pick<Schemas['UplinkHealth'], 'uplink' | 'interface' | 'state' | 'since'>[]
  observed: readonly Observation[]
  /** Begin and end in milliseconds. */
  from: number
  now: number
}

export interface Span {
  from: number
  to: number
  kind: BandKind
}

export interface Row {
  uplink: string
  /** It is one of the configured uplinks. */
  configured: boolean
  spans: Span[]
}

export interface KernelSpan {
  from: number
  to: number
  uplink: string
}

export interface Numbered {
  number: number
  decision: Schemas['UplinkDecision']
}

export interface Timeline {
  rows: Row[]
  kernel: KernelSpan[]
  /** Changes that were made, oldest first, from 1. */
  changes: Numbered[]
}

/** The key of an uplink in the answers of the daemon: its name, else its interface. */
export function nameOf(uplink: { name: string; interface: string }): string {
  return uplink.name || uplink.interface
}

export function numberChanges(decisions: readonly Schemas['UplinkDecision'][]): Numbered[] {
  return decisions
    .filter((decision) => decision.applied)
    .sort((one, other) => Date.parse(one.time) - Date.parse(other.time))
    .map((decision, index) => ({ number: index + 1, decision }))
}

export function timelineOf(input: TimelineInput): Timeline {
  const changes = numberChanges(input.manager.decisions)
  const active = activeSpans(input, changes)
  const configured = input.uplinks.map(nameOf)
  const former = [...new Set(active.map((span) => span.uplink))].filter(
    (name) =>
      !configured.includes(name) && active.some((span) => span.uplink === name && span.to > input.from),
  )
  const rows = [...configured, ...former].map((name) => ({
    uplink: name,
    configured: configured.includes(name),
    spans: spansOf(name, configured.includes(name), input, active),
  }))
  return { rows, kernel: kernelSpans(input, changes), changes }
}

/** Spans in which an uplink was the active one. */
function activeSpans({ manager, from, now }: TimelineInput, changes: readonly Numbered[]): KernelSpan[] {
  const spans: KernelSpan[] = []
  const first = changes[0]?.decision
  if (first?.from) spans.push({ from, to: Date.parse(first.time), uplink: first.from })
  changes.forEach(({ decision }, index) => {
    if (!decision.to) return
    const next = changes[index + 1]?.decision
    const start = Date.parse(decision.time)
    const end = next ? Date.parse(next.time) : endOf(manager, decision, start, now)
    spans.push({ from: start, to: end, uplink: decision.to })
  })
  return clip(spans, from, now)
}

/** The last active uplink may not be it any more: then a later decision names none. */
function endOf(
  manager: TimelineInput['manager'],
  last: Schemas['UplinkDecision'],
  start: number,
  now: number,
): number {
  if (manager.active === last.to) return now
  const none = manager.decisions
    .filter((decision) => !decision.to && Date.parse(decision.time) > start)
    .map((decision) => Date.parse(decision.time))
  return none.length > 0 ? Math.min(...none) : start
}

function kernelSpans(input: TimelineInput, changes: readonly Numbered[]): KernelSpan[] {
  const { manager, observed, from, now } = input
  const agreed = changes.filter(({ decision }) => decision.to && decision.kernel_agrees_at)
  const spans: KernelSpan[] = agreed.map(({ decision }, index) => {
    const start = Date.parse(decision.kernel_agrees_at ?? decision.time)
    const next = agreed[index + 1]?.decision.kernel_agrees_at
    const end = next ? Date.parse(next) : endOf(manager, decision, start, now)
    return { from: start, to: end, uplink: decision.to ?? '' }
  })
  // A single uplink has no decisions: its table shows that it has the default route, since this tab looks.
  const legs = manager.egress_legs.filter((leg) => leg.installed)
  const since = observed[0]?.at
  if (manager.active === null && legs.length === 1 && legs[0] && since !== undefined)
    spans.push({ from: since, to: now, uplink: legs[0].uplink })
  return clip(spans, from, now)
}

function spansOf(
  name: string,
  configured: boolean,
  input: TimelineInput,
  active: readonly KernelSpan[],
): Span[] {
  const { from, now, manager, uplinks } = input
  const own = active.filter((span) => span.uplink === name)
  if (!configured) return own.map(({ from: start, to }) => ({ from: start, to, kind: 'active' as const }))
  const uplink = uplinks.find((each) => nameOf(each) === name)
  const states = statesOf(name, input)
  const held = heldSpan(name, input)
  const only = manager.active === null && uplinks.filter((each) => each.enabled).length === 1
  const cuts = new Set([from, now])
  for (const span of [...active, ...states, ...(held ? [held] : [])]) {
    if (span.from > from && span.from < now) cuts.add(span.from)
    if (span.to > from && span.to < now) cuts.add(span.to)
  }
  const times = [...cuts].sort((one, other) => one - other)
  const spans: Span[] = []
  for (let index = 1; index < times.length; index += 1) {
    const start = times[index - 1] ?? from
    const end = times[index] ?? now
    const middle = (start + end) / 2
    const within = (span: { from: number; to: number }) => span.from <= middle && middle < span.to
    const kind = kindAt({
      enabled: uplink?.enabled ?? true,
      // Before the first decision nobody knows which uplink was active.
      role: own.some(within) ? 'active' : active.some(within) ? 'standby' : null,
      state: states.find(within)?.state ?? null,
      held: held !== null && within(held),
      only,
    })
    if (kind === null) continue
    const last = spans[spans.length - 1]
    if (last && last.kind === kind && last.to === start) last.to = end
    else spans.push({ from: start, to: end, kind })
  }
  return spans
}

interface Facts {
  enabled: boolean
  role: 'active' | 'standby' | null
  state: string | null
  held: boolean
  only: boolean
}

function kindAt({ enabled, role, state, held, only }: Facts): BandKind | null {
  if (state === 'offline') return 'offline'
  if (state === 'captive') return 'captive'
  if (state === 'disabled' || (!enabled && state !== null)) return 'disabled'
  if (state === 'degraded' || state === 'disconnecting') return 'degraded'
  if (role === 'active') return 'active'
  if (held) return 'held'
  if (only && state !== null) return 'only'
  if (state === 'connecting' && role !== null) return 'offline'
  if (role === 'standby' || state === 'online') return 'standby'
  return null
}

interface StateSpan {
  from: number
  to: number
  state: string
}

/** States that this tab saw, and the present one since the time that the daemon says. */
function statesOf(name: string, { observed, health, now }: TimelineInput): StateSpan[] {
  const spans: StateSpan[] = []
  observed.forEach((each, index) => {
    const state = each.states[name]
    if (state !== undefined) spans.push({ from: each.at, to: observed[index + 1]?.at ?? now, state })
  })
  const present = health.find((each) => (each.uplink || each.interface) === name)
  if (!present) return spans
  const since = present.since ? Date.parse(present.since) : (observed.at(-1)?.at ?? now)
  return [
    ...spans.map((span) => ({ ...span, to: Math.min(span.to, since) })).filter((span) => span.to > span.from),
    { from: since, to: now, state: present.state },
  ]
}

/** A pinned uplink is held from the last change away from it. */
function heldSpan(name: string, { manager, observed, now }: TimelineInput): StateSpan | null {
  const pin = manager.flap_pins.find((each) => each.uplink === name)
  if (!pin) return null
  const left = manager.decisions
    .filter((decision) => decision.applied && decision.from === name)
    .map((decision) => Date.parse(decision.time))
  const from = left.length > 0 ? Math.max(...left) : (observed[0]?.at ?? now)
  return { from, to: Math.min(now, Date.parse(pin.pinned_until)), state: 'held' }
}

function clip(spans: readonly KernelSpan[], from: number, now: number): KernelSpan[] {
  return spans
    .map((span) => ({ ...span, from: Math.max(span.from, from), to: Math.min(span.to, now) }))
    .filter((span) => span.to > span.from)
}

const MINUTE = 60_000
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440].map((minutes) => minutes * MINUTE)

/** Round times for the axis, at most so many. */
export function ticksOf(from: number, now: number, most: number): number[] {
  const step = STEPS.find((each) => (now - from) / each <= most) ?? 1440 * MINUTE
  const offset = new Date(from).getTimezoneOffset() * MINUTE
  const first = Math.ceil((from - offset) / step) * step + offset
  const ticks: number[] = []
  for (let time = first; time < now; time += step) ticks.push(time)
  return ticks
}

/** Moves marks apart so that neighbours do not overlap, within an interval. */
export function spread(marks: readonly number[], gap: number, least: number, most: number): number[] {
  const placed = [...marks]
  for (let index = 0; index < placed.length; index += 1) {
    const before = placed[index - 1]
    placed[index] = Math.max(placed[index] ?? 0, before === undefined ? least : before + gap)
  }
  for (let index = placed.length - 1; index >= 0; index -= 1) {
    const after = placed[index + 1]
    placed[index] = Math.min(placed[index] ?? 0, after === undefined ? most : after - gap)
  }
  return placed
}

/** Shortest time that is drawn, so that a change of this minute is no hairline. */
const SHORTEST = 10 * MINUTE

/** Begin of the drawing: the range, but not long before the first thing that is known. */
export function beginOf(input: Omit<TimelineInput, 'from'>, range: number): number {
  const { manager, health, observed, now } = input
  const known = [
    ...manager.decisions.map((decision) => Date.parse(decision.time)),
    ...health.flatMap((each) => (each.since ? [Date.parse(each.since)] : [])),
    ...observed.slice(0, 1).map((each) => each.at),
  ]
  const first = known.length > 0 ? Math.min(...known) : now
  const begin = Math.max(now - range, first - (now - first) * 0.03)
  return Math.min(begin, now - SHORTEST)
}
