import { describe, expect, it } from 'vitest'
import { growth, outcomeOf, prove, Stopped, ticksOf, type Bench, type LeakCheck, type Proof } from './proof'

const check: LeakCheck = {
  id: '',
  started_at: '',
  device_id: null,
  results: [],
  verdict: 'pass',
  remaining_risks: [],
}

/** A gateway whose clock runs only while something waits. */
function bench(change: Partial<Bench> = {}) {
  const state = { now: 0, up: true, ups: 0 }
  const all: Bench = {
    sample: () => Promise.resolve({ packets: state.now / 100, bytes: 0, escaped: 0 }),
    down: () => {
      state.up = false
      return Promise.resolve()
    },
    up: () => {
      state.up = true
      state.ups += 1
      return Promise.resolve()
    },
    works: () => Promise.resolve(state.up),
    leakCheck: () => Promise.resolve(check),
    wait: (ms) => {
      state.now += ms
      return Promise.resolve()
    },
    now: () => state.now,
    ...change,
  }
  return { state, all }
}

const quiet = () => undefined
const never = () => false

describe('proof', () => {
  it('pulls the tunnel, checks, and brings it back', async () => {
    const { state, all } = bench()
    const phases: string[] = []
    const proof = await prove(all, (each) => phases.push(each.phase), never)
    expect([...new Set(phases)]).toEqual(['before', 'pulling', 'down', 'up', 'after', 'done'])
    expect(state.up).toBe(true)
    expect(proof.check).toBe(check)
    expect(outcomeOf(proof, true)).toMatchObject({ verdict: 'pass', escaped: 0 })
  })
  it('brings the tunnel back after an error of the check', async () => {
    const { state, all } = bench({ leakCheck: () => Promise.reject(new Error('no')) })
    await expect(prove(all, quiet, never)).rejects.toThrow('no')
    expect(state.up).toBe(true)
  })
  it('brings the tunnel back after an error of the pull itself', async () => {
    const { state, all } = bench({ down: () => Promise.reject(new Error('no')) })
    await expect(prove(all, quiet, never)).rejects.toThrow('no')
    expect(state.ups).toBe(1)
  })
  it('brings the tunnel back when it is stopped', async () => {
    const { state, all } = bench()
    await expect(prove(all, quiet, () => !state.up)).rejects.toThrow(Stopped)
    expect(state.up).toBe(true)
  })
  it('leaves the tunnel alone when it is stopped before the pull', async () => {
    const { state, all } = bench()
    await expect(prove(all, quiet, () => true)).rejects.toThrow(Stopped)
    expect(state.ups).toBe(0)
  })
  it('tries again to bring the tunnel back, and says if it stays down', async () => {
    let tries = 0
    const { state, all } = bench()
    const flaky = {
      ...all,
      up: () => {
        tries += 1
        return tries < 3 ? Promise.reject(new Error('busy')) : all.up()
      },
    }
    await prove(flaky, quiet, never)
    expect(state.up).toBe(true)
    const reports: Proof[] = []
    await expect(
      prove({ ...all, up: () => Promise.reject(new Error('gone')) }, (each) => reports.push(each), never),
    ).rejects.toThrow('gone')
    expect(reports[reports.length - 1]?.restored).toBe(false)
  })
  it('ends without a handshake if none comes', async () => {
    let pulled = false
    const { all } = bench()
    const proof = await prove(
      {
        ...all,
        down: () => {
          pulled = true
          return Promise.resolve()
        },
        works: () => Promise.resolve(!pulled),
      },
      quiet,
      never,
    )
    expect(proof.backAt).toBeNull()
    expect(proof.restored).toBe(true)
  })
})

describe('outcome', () => {
  const proof = (escaped: (number | null)[], verdict: LeakCheck['verdict']): Proof => ({
    phase: 'done',
    samples: escaped.map((value, index) => ({ at: index * 1000, packets: index, bytes: 0, escaped: value })),
    pulledAt: 1000,
    backAt: 3000,
    check: { ...check, verdict },
    restored: true,
  })
  it('is proven only by a check that passes and a counter that did not move', () => {
    expect(outcomeOf(proof([0, 0, 0, 0], 'pass'), true).verdict).toBe('pass')
    expect(outcomeOf(proof([5, 5, 5, 5], 'pass'), true).verdict).toBe('pass')
    expect(outcomeOf(proof([0, 0, 0, 0], 'inconclusive'), true).verdict).toBe('unknown')
    expect(outcomeOf(proof([null, null], 'pass'), true).verdict).toBe('unknown')
  })
  it('is a leak if packets got out', () => {
    expect(outcomeOf(proof([0, 0, 2, 2], 'pass'), true)).toMatchObject({ verdict: 'leak', escaped: 2 })
    expect(outcomeOf(proof([0, 0, 0, 0], 'fail'), true).verdict).toBe('leak')
  })
  it('is direct where the policy lets the device out', () => {
    expect(outcomeOf(proof([0, 0, 0, 0], 'pass'), false).verdict).toBe('direct')
  })
})

describe('counters', () => {
  const samples = [10, 12, null, 15, 2].map((packets, index) => ({
    at: index * 500,
    packets,
    bytes: null,
    escaped: null,
  }))
  it('grow from reading to reading, also over a gap and a restart', () => {
    expect(growth(samples, 'packets')).toBe(7)
    expect(growth(samples, 'bytes')).toBeNull()
    expect(growth(samples, 'packets', 0, 500)).toBe(2)
  })
  it('are ticks between the readings', () => {
    const { unit, at } = ticksOf(samples, 'packets')
    expect(unit).toBe(1)
    expect(at).toEqual([125, 375, 1625, 1875])
    expect(ticksOf(samples, 'packets', 2).unit).toBe(4)
  })
  it('that are refreshed slowly are spread over the time of a step', () => {
    const slow = [0, 0, 4, 4, 4].map((bytes, index) => ({
      at: index * 500,
      packets: null,
      bytes,
      escaped: null,
    }))
    expect(ticksOf(slow, 'bytes', 60, 1100).at).toEqual([125, 375, 625, 875])
  })
})
