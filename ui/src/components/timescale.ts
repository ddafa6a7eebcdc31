// The scale of a drawing over time, and what is placed on it.

/** Where times stand in a drawing. */
export interface Scale {
  from: number
  now: number
  /** Left end of the times; the names of the rows stand before it. */
  left: number
  width: number
  narrow: boolean
  x: (time: number) => number
}

export function scaleOf(from: number, now: number, width: number): Scale {
  const narrow = width < 560
  const left = narrow ? 84 : 132
  return {
    from,
    now,
    left,
    width,
    narrow,
    x: (time) => left + ((time - from) / (now - from)) * (width - left),
  }
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

/** Width of a text of the drawing in pixels, near enough to know whether it has room. */
export function widthOf(text: string): number {
  return text.length * 6.3
}

/** A value at a time; `null` where there was none. */
export interface Sample {
  /** Begin of the minute in milliseconds. */
  at: number
  value: number | null
}

/** Longest pause between two samples of minutes that are one line, in milliseconds. */
const PAUSE = 1.5 * MINUTE

/** The lines of the samples: they are split where a value or a minute is missing. */
export function linesOf(samples: readonly Sample[]): { at: number; value: number }[][] {
  const lines: { at: number; value: number }[][] = []
  let before: Sample | undefined
  for (const sample of samples) {
    const { at, value } = sample
    if (value !== null) {
      const line = lines.at(-1)
      if (line && before && before.value !== null && at - before.at <= PAUSE) line.push({ at, value })
      else lines.push([{ at, value }])
    }
    before = sample
  }
  return lines
}
