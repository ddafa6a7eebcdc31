// Moving policies. Their order is that of their priorities, which leave room between each other, so one move normally
// changes one priority.

export interface Ranked {
  id: string
  priority: number
}

export interface Renumbering {
  id: string
  priority: number
}

/** Usual distance of two priorities. */
const STEP = 10

/** Returns the ids in the order after a block of them moved before another one; `null` is the end. */
export function moved(order: readonly string[], block: readonly string[], before: string | null): string[] {
  const rest = order.filter((id) => !block.includes(id))
  const inOrder = order.filter((id) => block.includes(id))
  const at = before === null ? rest.length : rest.indexOf(anchor(order, block, before))
  return [...rest.slice(0, at < 0 ? rest.length : at), ...inOrder, ...rest.slice(at < 0 ? rest.length : at)]
}

/** The first one from `before` on that does not move itself. */
function anchor(order: readonly string[], block: readonly string[], before: string): string {
  for (const id of order.slice(order.indexOf(before))) if (!block.includes(id)) return id
  return ''
}

/**
 * Priorities that bring a list, sorted by priority, into the order after a block of ids moved. Only the block gets other
 * ones, and those behind it where there is no room.
 */
export function renumber(
  list: readonly Ranked[],
  order: readonly string[],
  block: readonly string[],
): Renumbering[] {
  const before = new Map(list.map((each) => [each.id, each.priority]))
  const place = new Map(list.map((each, index) => [each.id, index]))
  const same = list.every((each, at) => order[at] === each.id)
  const still = (at: number) => same || !block.includes(order[at] ?? '')
  const changes: Renumbering[] = []
  let last = 0
  let lastPlace = -1
  for (let at = 0; at < order.length;) {
    const id = order[at] ?? ''
    const own = before.get(id) ?? 0
    if (still(at)) {
      // Equal priorities keep the order of age, which is that of the list.
      const fits =
        at === 0 || own > last || (own === last && lastPlace >= 0 && (place.get(id) ?? -1) > lastPlace)
      last = fits ? own : last + STEP
      lastPlace = fits ? (place.get(id) ?? -1) : -1
      if (!fits) changes.push({ id, priority: last })
      at += 1
      continue
    }
    let end = at
    while (end < order.length && !still(end)) end += 1
    const next = end < order.length ? before.get(order[end] ?? '') : undefined
    for (const priority of between(last, next, end - at)) {
      const mover = order[at] ?? ''
      if (priority !== before.get(mover)) changes.push({ id: mover, priority })
      last = priority
      at += 1
    }
    lastPlace = -1
  }
  return changes
}

/** That many priorities above one and below another, evenly spaced; without room they go on in steps. */
function between(above: number, below: number | undefined, count: number): number[] {
  for (const step of [STEP, 5, 2, 1]) {
    const first = Math.floor(above / step) * step + step
    if (below === undefined || first + step * (count - 1) < below)
      return Array.from({ length: count }, (_, index) => first + step * index)
  }
  return Array.from({ length: count }, (_, index) => above + STEP * (index + 1))
}

/** Order after a block went one place up or down; the same order at an end. */
export function nudged(order: readonly string[], block: readonly string[], by: -1 | 1): string[] {
  const places = order.map((id, at) => (block.includes(id) ? at : -1)).filter((at) => at >= 0)
  const first = places[0]
  const last = places[places.length - 1]
  if (first === undefined || last === undefined) return [...order]
  if (by === -1) return first === 0 ? [...order] : moved(order, block, order[first - 1] ?? null)
  return last === order.length - 1 ? [...order] : moved(order, block, order[last + 2] ?? null)
}
