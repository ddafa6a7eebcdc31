// The session: the token that changes carry, and requests that wait for a new sign-in.

type Listener = () => void

class Session {
  csrf: string | null = null
  private waiting: Listener[] = []
  private listeners = new Set<Listener>()

  /** A request found that the session has ended. */
  get expired() {
    return this.waiting.length > 0
  }

  /** Waits for a sign-in. The dialog for it appears as soon as one request waits. */
  signedInAgain(): Promise<void> {
    return new Promise((resolve) => {
      this.waiting.push(resolve)
      this.tell()
    })
  }

  signedIn(csrf: string | null) {
    this.csrf = csrf
    const waiting = this.waiting
    this.waiting = []
    for (const resume of waiting) resume()
    this.tell()
  }

  subscribe = (listener: Listener) => {
    this.listeners.add(listener)
    return () => void this.listeners.delete(listener)
  }

  private tell() {
    for (const listener of this.listeners) listener()
  }
}

export const session = new Session()
