// The timeline of uplinks: their states as bands, and the changes of the active uplink.

import type { Schemas } from '@/api/client'

export type BandKind =
  'active' | 'standby' | 'degraded' | 'offline' | 'captive' | 'held' | 'disabled' | 'only'

type Span = Schemas['UplinkSpan']

export interface TimelineInput {
  uplinks: readonly { name: string; interface: string; enabled: boolean }[]
  manager: Pick<Schemas['WanManager'], 'active' | 'decisions' | 'flap_pins' | 'egress_legs'>
  /** Present state. */
  health: readonly Pick<Schemas['UplinkHealth'], 'uplink' | 'interface' | 'state' | 'since'>[]
  /** States of the last day, by uplink. */
  recorded: ReadonlyMap<string, readonly Span[]>
  /** Begin and end in milliseconds. */
  from: number
  now: number
}

export interface KindSpan {
  from: number
  to: number
  kind: BandKind
}

export interface Row {
  uplink: string
  /** It is one of the configured uplinks. */
  configured: boolean
  spans: KindSpan[]
}

export interface UplinkSpan {
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
  kernel: UplinkSpan[]
  /** Changes that were made, oldest first, from 1. */
  changes: Numbered[]
}

/** The key of an uplink in the answers of the daemon: its name, else its interface. */
export function nameOf(uplink: { name: string; interface: string }): string {
  return uplink.name || uplink.interface
}

/** The key of the health of an uplink. */
export function nameOfHealth(health: { uplink: string; interface: string }): string {
  return health.uplink || health.interface
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
  const former = [...new Set(active.map((span) => span.uplink))].filter((name) => !configured.includes(name))
  const rows = [...configured, ...former].map((name) => ({
    uplink: name,
    configured: configured.includes(name),
    spans: spansOf(name, configured.includes(name), input, active),
  }))
  return { rows, kernel: kernelSpans(input, changes), changes }
}

/** Spans in which an uplink was the active one, by the decisions. */
function activeSpans({ manager, from, now }: TimelineInput, changes: readonly Numbered[]): UplinkSpan[] {
  const spans: UplinkSpan[] = []
  const first = changes[0]?.decision
  if (first?.from) spans.push({ from, to: Date.parse(first.time), uplink: first.from })
  changes.forEach(({ decision }, index) => {
    if (!decision.to) return
    const next = changes[index + 1]?.decision
    const start = Date.parse(decision.time)
    const end = endOf(manager, decision, start, next ? Date.parse(next.time) : null, now)
    spans.push({ from: start, to: end, uplink: decision.to })
  })
  return clip(spans, from, now)
}

/** An uplink was active until the next change, or until a decision that names none. */
function endOf(
  manager: TimelineInput['manager'],
  last: Schemas['UplinkDecision'],
  start: number,
  next: number | null,
  now: number,
): number {
  const none = manager.decisions
    .filter((decision) => !decision.to)
    .map((decision) => Date.parse(decision.time))
    .filter((time) => time > start && (next === null || time < next))
  if (none.length > 0) return Math.min(...none)
  if (next !== null) return next
  return manager.active === last.to ? now : start
}

function kernelSpans(input: TimelineInput, changes: readonly Numbered[]): UplinkSpan[] {
  const { manager, from, now } = input
  const agreed = changes.filter(({ decision }) => decision.to && decision.kernel_agrees_at)
  const spans: UplinkSpan[] = agreed.map(({ decision }, index) => {
    const start = Date.parse(decision.kernel_agrees_at ?? decision.time)
    const next = agreed[index + 1]?.decision.kernel_agrees_at
    const end = endOf(manager, decision, start, next ? Date.parse(next) : null, now)
    return { from: start, to: end, uplink: decision.to ?? '' }
  })
  const legs = manager.egress_legs.filter((leg) => leg.installed)
  const since = singleSince(input)
  if (since !== null && legs[0]) spans.push({ from: since, to: now, uplink: legs[0].uplink })
  return clip(spans, from, now)
}

/** Time since which there is one uplink only: that of the last decision, which was about several. */
function singleSince({ manager, uplinks }: Pick<TimelineInput, 'manager' | 'uplinks'>): number | null {
  if (manager.active !== null || uplinks.filter((each) => each.enabled).length !== 1) return null
  const times = manager.decisions.map((decision) => Date.parse(decision.time))
  return times.length > 0 ? Math.max(...times) : null
}

function spansOf(
  name: string,
  configured: boolean,
  input: TimelineInput,
  active: readonly UplinkSpan[],
): KindSpan[] {
  const { from, now, uplinks } = input
  const own = active.filter((span) => span.uplink === name)
  if (!configured) return own.map(({ from: start, to }) => ({ from: start, to, kind: 'active' as const }))
  const uplink = uplinks.find((each) => nameOf(each) === name)
  const states = statesOf(name, input)
  const held = heldSpan(name, input)
  const single = singleSince(input)
  const cuts = new Set([from, now])
  const add = (time: number) => (time > from && time < now ? cuts.add(time) : null)
  for (const span of [...active, ...states, ...(held ? [held] : [])]) {
    add(span.from)
    add(span.to)
  }
  if (single !== null) add(single)
  const times = [...cuts].sort((one, other) => one - other)
  const spans: KindSpan[] = []
  for (let index = 1; index < times.length; index += 1) {
    const start = times[index - 1] ?? from
    const end = times[index] ?? now
    const middle = (start + end) / 2
    const within = (span: { from: number; to: number }) => span.from <= middle && middle < span.to
    const state = states.find(within) ?? null
    const decided = own.some(within) ? 'active' : active.some(within) ? 'standby' : null
    const kind = kindAt({
      enabled: uplink?.enabled ?? true,
      // The record has the role, the decisions have it for the time before, and before them it is unknown.
      role: state?.role ?? decided,
      state: state?.state ?? null,
      held: held !== null && within(held),
      only: single !== null && middle >= single && uplink?.enabled === true,
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
  if (only) return 'only'
  if (state === 'connecting' && role !== null) return 'offline'
  if (role === 'standby' || state === 'online') return 'standby'
  return null
}

interface StateSpan {
  from: number
  to: number
  state: string
  role: 'active' | 'standby' | null
}

/** The recorded states, and after them the present one since the time that the daemon says. */
function statesOf(name: string, { recorded, health, now }: TimelineInput): StateSpan[] {
  const spans: StateSpan[] = (recorded.get(name) ?? []).map((span) => ({
    from: Date.parse(span.from),
    to: Date.parse(span.to),
    state: span.state,
    role: span.active ? 'active' : 'standby',
  }))
  const present = health.find((each) => nameOfHealth(each) === name)
  if (!present) return spans
  const end = spans.at(-1)?.to
  const since = present.since ? Date.parse(present.since) : null
  const from = since === null ? (end ?? now) : end === undefined ? since : Math.max(since, end)
  const last = spans.at(-1)
  // The record ends at its last read; until the present state began, its last state went on.
  if (last && from > last.to) last.to = from
  return [...spans, { from, to: now, state: present.state, role: null }]
}

/** A pinned uplink is held from the last change away from it. */
function heldSpan(name: string, { manager, now }: TimelineInput): { from: number; to: number } | null {
  const pin = manager.flap_pins.find((each) => each.uplink === name)
  if (!pin) return null
  const left = manager.decisions
    .filter((decision) => decision.applied && decision.from === name)
    .map((decision) => Date.parse(decision.time))
  return { from: left.length > 0 ? Math.max(...left) : now, to: Math.min(now, Date.parse(pin.pinned_until)) }
}

function clip(spans: readonly UplinkSpan[], from: number, now: number): UplinkSpan[] {
  return spans
    .map((span) => ({ ...span, from: Math.max(span.from, from), to: Math.min(span.to, now) }))
    .filter((span) => span.to > span.from)
}

/** Shortest time that is drawn, so that a change of this minute is no hairline. */
const SHORTEST = 10 * 60_000

/** Time of the first thing that is known; null if nothing is. */
export function firstKnown(input: Pick<TimelineInput, 'manager' | 'health' | 'recorded'>): number | null {
  const known = [
    ...input.manager.decisions.map((decision) => Date.parse(decision.time)),
    ...input.health.flatMap((each) => (each.since ? [Date.parse(each.since)] : [])),
    ...[...input.recorded.values()].flatMap((spans) => (spans[0] ? [Date.parse(spans[0].from)] : [])),
  ]
  return known.length > 0 ? Math.min(...known) : null
}

/** Begin of the drawing: the range, but not long before the first thing that is known. */
export function beginOf(first: number | null, range: number, now: number): number {
  if (first === null) return now - SHORTEST
  const begin = Math.max(now - range, first - (now - first) * 0.03)
  return Math.min(begin, now - SHORTEST)
}

type Minute = Schemas['UplinkMinute']

/** Minutes in which a line was slow, lost packets, or did not answer. */
export interface Trouble {
  /** Begin in milliseconds. */
  at: number
  /** Highest latency; null if nothing answered. */
  latency: number | null
  /** Highest loss. */
  loss: number | null
}

/** Loss in percent from which a minute is remarkable. */
const LOSS = 5

/** The troubles of a line: neighbouring minutes are one. */
export function troublesOf(minutes: readonly Minute[]): Trouble[] {
  const usual = median(minutes.flatMap((each) => (each.latency_ms === null ? [] : [each.latency_ms])))
  const slow = Math.max(usual * 2, usual + 20)
  const troubles: (Trouble & { last: number })[] = []
  for (const { at, latency_ms, loss_pct } of minutes) {
    const time = Date.parse(at)
    const silent = latency_ms === null
    if (!silent && latency_ms <= slow && (loss_pct ?? 0) < LOSS) continue
    const before = troubles.at(-1)
    if (before && time - before.last <= 60_000 && (before.latency === null) === silent) {
      before.last = time
      if (latency_ms !== null) before.latency = Math.max(before.latency ?? 0, latency_ms)
      if (loss_pct !== null) before.loss = Math.max(before.loss ?? 0, loss_pct)
    } else troubles.push({ at: time, last: time, latency: latency_ms, loss: loss_pct })
  }
  return troubles.map(({ at, latency, loss }) => ({ at, latency, loss }))
}

function median(values: number[]): number {
  const sorted = [...values].sort((one, other) => one - other)
  return sorted[Math.floor(sorted.length / 2)] ?? 0
}
