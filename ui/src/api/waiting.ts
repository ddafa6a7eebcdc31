// Changes that the daemon has not answered for a while. A person who has chosen an action hears that it waits.

/** Time after which a change counts as slow, in milliseconds. */
const SLOW = 3_000

let slow = 0
const listeners = new Set<() => void>()

function set(changed: number) {
  slow = changed
  for (const listener of listeners) listener()
}

/** Waits for the answer to a change, and counts it among the slow ones while it is late. */
export async function whileWaiting<T>(answer: Promise<T>): Promise<T> {
  let late = false
  const timer = window.setTimeout(() => {
    late = true
    set(slow + 1)
  }, SLOW)
  try {
    return await answer
  } finally {
    window.clearTimeout(timer)
    if (late) set(slow - 1)
  }
}

export const slowChanges = {
  count: () => slow,
  subscribe: (listener: () => void) => {
    listeners.add(listener)
    return () => void listeners.delete(listener)
  },
}
