// Requests that the daemon refuses because there were too many at once. Nothing was done, so each is sent again.

/** Longest wait in seconds that a page makes by itself. A longer one, such as that of a locked account, is shown. */
const LONGEST = 5
const ATTEMPTS = 4

/** Sends a request, and again after the time that the daemon names, until it is not refused for its rate. */
export async function patiently(
  request: Request,
  send: (request: Request) => Promise<Response>,
): Promise<Response> {
  for (let attempt = 1; ; attempt += 1) {
    const last = attempt === ATTEMPTS
    const response = await send(last ? request : request.clone())
    const wait = response.status === 429 ? waitOf(response) : null
    if (wait === null || last) return response
    await response.body?.cancel()
    await pause(wait, request.signal)
  }
}

/** Seconds to wait; null if the daemon names none, or too many. */
function waitOf(response: Response): number | null {
  const seconds = Number(response.headers.get('Retry-After') ?? Number.NaN)
  return seconds >= 0 && seconds <= LONGEST ? seconds : null
}

function pause(seconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = () => {
      clearTimeout(timer)
      reject(signal.reason as Error)
    }
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', end)
      resolve()
    }, seconds * 1000)
    if (signal.aborted) end()
    else signal.addEventListener('abort', end, { once: true })
  })
}
