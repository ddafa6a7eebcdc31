// The proof: the tunnel is pulled while counters are read, and always brought back.

import type { Schemas } from '@/api/client'

export type LeakCheck = Schemas['LeakCheck']
export type Phase = 'before' | 'pulling' | 'down' | 'up' | 'after' | 'done'

/** Counters at a moment. `null` where there is no answer. */
export interface Sample {
  /** Milliseconds since the proof began. */
  at: number
  /** Packets that the policy of the device matched. */
  packets: number | null
  /** Bytes that the tunnel sent. */
  bytes: number | null
  /** Packets that left past the guard. */
  escaped: number | null
}

export interface Proof {
  phase: Phase
  samples: Sample[]
  pulledAt: number | null
  /** The tunnel works again. */
  backAt: number | null
  check: LeakCheck | null
  /** The tunnel was brought up again, or was never down. */
  restored: boolean
}

/** What the proof does with the gateway. */
export interface Bench {
  sample: () => Promise<Omit<Sample, 'at'>>
  down: () => Promise<void>
  up: () => Promise<void>
  /** Reports whether the tunnel carries traffic. */
  works: () => Promise<boolean>
  leakCheck: () => Promise<LeakCheck>
  wait: (ms: number) => Promise<void>
  now: () => number
}

export const EVERY = 500
const BEFORE = 2000
const AFTER_CHECK = 2500
const AFTER = 2500
const DOWN_WITHIN = 10_000
const BACK_WITHIN = 40_000
const TRIES = 4

export class Stopped extends Error {}

/** Runs the proof. However it ends, the tunnel is up afterwards, as far as the gateway lets it. */
export async function prove(
  bench: Bench,
  report: (proof: Proof) => void,
  stopped: () => boolean,
): Promise<Proof> {
  const start = bench.now()
  let proof: Proof = {
    phase: 'before',
    samples: [],
    pulledAt: null,
    backAt: null,
    check: null,
    restored: true,
  }
  const set = (change: Partial<Proof>) => {
    proof = { ...proof, ...change }
    report(proof)
  }
  const since = () => bench.now() - start
  const goOn = () => {
    if (stopped()) throw new Stopped()
  }
  const watch = async (ms: number, until: () => Promise<boolean> = () => Promise.resolve(false)) => {
    const end = bench.now() + ms
    for (;;) {
      const counters = await bench.sample().catch(() => ({ packets: null, bytes: null, escaped: null }))
      set({ samples: [...proof.samples, { at: since(), ...counters }] })
      if (await until().catch(() => false)) return true
      if (bench.now() >= end) return false
      await bench.wait(EVERY)
    }
  }
  const restore = async () => {
    for (let attempt = 1; ; attempt += 1) {
      try {
        await bench.up()
        return
      } catch (error) {
        if (attempt >= TRIES) throw error
        await bench.wait(EVERY * attempt)
      }
    }
  }
  set({})
  await watch(BEFORE)
  goOn()
  let failure: unknown
  set({ phase: 'pulling', pulledAt: since(), restored: false })
  try {
    await bench.down()
    await watch(DOWN_WITHIN, async () => stopped() || !(await bench.works()))
    goOn()
    set({ phase: 'down' })
    const check = await bench.leakCheck()
    set({ check })
    await watch(AFTER_CHECK, () => Promise.resolve(stopped()))
    goOn()
  } catch (error) {
    failure = error
  }
  set({ phase: 'up' })
  // This throws only if the tunnel stays down, which matters more than any error before it.
  await restore()
  set({ restored: true })
  if (failure !== undefined) throw failure
  if (await watch(BACK_WITHIN, bench.works)) {
    set({ backAt: since(), phase: 'after' })
    await watch(AFTER)
  }
  set({ phase: 'done' })
  return proof
}

export interface Outcome {
  /** `pass` proves that nothing got out. */
  verdict: 'pass' | 'leak' | 'direct' | 'unknown'
  escaped: number | null
  /** Packets of the device while the tunnel was down. */
  stopped: number | null
  seconds: number
  /** Interfaces by which packets left while the tunnel was down. */
  through: string[]
}

/** Growth of a counter between two times; `null` without two readings. A counter that began anew counts from 0. */
export function growth(samples: Sample[], field: 'packets' | 'bytes' | 'escaped', from = 0, to = Infinity) {
  const values = samples
    .filter((sample) => sample.at >= from && sample.at <= to)
    .map((sample) => sample[field])
    .filter((value) => value !== null)
  if (values.length < 2) return null
  let sum = 0
  for (let index = 1; index < values.length; index += 1) {
    const step = (values[index] ?? 0) - (values[index - 1] ?? 0)
    sum += step >= 0 ? step : (values[index] ?? 0)
  }
  return sum
}

/** What a proof shows. Only a leak check that passes and counters that did not move prove anything. */
export function outcomeOf(proof: Proof, failClosed: boolean): Outcome {
  const pulled = proof.pulledAt ?? 0
  const end = proof.backAt ?? proof.samples[proof.samples.length - 1]?.at ?? pulled
  const escaped = growth(proof.samples, 'escaped')
  const stopped = growth(proof.samples, 'packets', pulled, end)
  const seconds = Math.round((end - pulled) / 1000)
  const failed = proof.check?.verdict === 'fail' || (escaped ?? 0) > 0
  const verdict = failed
    ? failClosed
      ? 'leak'
      : 'direct'
    : !failClosed
      ? 'direct'
      : proof.check?.verdict === 'pass' && escaped === 0
        ? 'pass'
        : 'unknown'
  const through = (proof.check?.results ?? []).flatMap((result) =>
    result.packets.filter((each) => each.packets > 0).map((each) => each.interface),
  )
  return { verdict, escaped, stopped, seconds, through: [...new Set(through)].sort() }
}

export interface Ticks {
  /** What one tick stands for. */
  unit: number
  /** Times in milliseconds. */
  at: number[]
}

/**
 * Ticks of a counter for the strip: spread evenly over each pause between two readings. A counter that the daemon itself
 * reads only every `refreshed` milliseconds grows in steps, so a step is spread over that time.
 */
export function ticksOf(
  all: Sample[],
  field: 'packets' | 'bytes' | 'escaped',
  most = 130,
  refreshed = 0,
): Ticks {
  const samples = refreshed > 0 ? thinned(all, field, refreshed) : all
  const total = growth(samples, field) ?? 0
  const unit = Math.max(1, Math.ceil(total / most))
  const at: number[] = []
  samples.forEach((sample, index) => {
    const before = samples[index - 1]
    const value = sample[field]
    const last = before?.[field]
    if (!before || value === null || last === null || last === undefined) return
    const step = value >= last ? value - last : value
    const count = step === 0 ? 0 : Math.max(1, Math.round(step / unit))
    for (let tick = 0; tick < count; tick += 1)
      at.push(before.at + ((tick + 0.5) / count) * (sample.at - before.at))
  })
  return { unit, at }
}

/** Leaves out readings that repeat the one before, up to a time. */
function thinned(samples: Sample[], field: 'packets' | 'bytes' | 'escaped', ms: number): Sample[] {
  const kept: Sample[] = []
  for (const sample of samples) {
    const last = kept[kept.length - 1]
    const repeats = last && sample[field] === last[field] && sample.at - last.at < ms
    if (!repeats) kept.push(sample)
  }
  return kept
}
