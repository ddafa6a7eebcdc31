// Where the setup stands. It is kept in the browser, so that one can leave and resume; no secret is in it.

export const STEPS = ['admin', 'ground', 'wires', 'names', 'path', 'failure', 'prove', 'save'] as const
export type Step = (typeof STEPS)[number]

export interface Progress {
  step: Step
  /** What each finished step says of itself. */
  done: Partial<Record<Step, string>>
  skipped: Step[]
  /** The tunnel and the device of the later steps. */
  tunnel?: string
  device?: string
  /** A policy is to decide on hosts that are no device. */
  byPolicy?: boolean
}

const STORED = 'gateway.setup'
const START: Progress = { step: 'admin', done: {}, skipped: [] }

export function loadProgress(): Progress {
  try {
    const stored = JSON.parse(localStorage.getItem(STORED) ?? '{}') as Partial<Progress>
    const step = STEPS.find((each) => each === stored.step) ?? 'admin'
    return {
      ...START,
      ...stored,
      step,
      done: { ...stored.done },
      skipped: STEPS.filter((each) => stored.skipped?.includes(each)),
    }
  } catch {
    return START
  }
}

export function saveProgress(progress: Progress) {
  localStorage.setItem(STORED, JSON.stringify(progress))
}

export function forgetProgress() {
  localStorage.removeItem(STORED)
}

export function after(step: Step): Step {
  return STEPS[Math.min(STEPS.indexOf(step) + 1, STEPS.length - 1)] ?? step
}

export function before(step: Step): Step {
  return STEPS[Math.max(STEPS.indexOf(step) - 1, 0)] ?? step
}

/** Ends a step with what it says of itself, and goes on. */
export function finished(progress: Progress, summary: string, more: Partial<Progress> = {}): Progress {
  const { step } = progress
  return {
    ...progress,
    ...more,
    done: { ...progress.done, [step]: summary },
    skipped: progress.skipped.filter((each) => each !== step),
    step: after(step),
  }
}

export function skip(progress: Progress): Progress {
  const { step } = progress
  if (progress.done[step] !== undefined) return { ...progress, step: after(step) }
  return {
    ...progress,
    skipped: [...progress.skipped.filter((each) => each !== step), step],
    step: after(step),
  }
}
