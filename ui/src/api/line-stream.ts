// Lines of the API that are followed while the page is visible, and read again after a break.

/** Reads lines until they end or are aborted. */
export type ReadLines = (signal: AbortSignal, take: (lines: unknown[]) => void) => Promise<void>

export interface LineReader {
  /** Takes lines. Returns true if they are the last ones. */
  take: (lines: unknown[]) => boolean
  /** All lines were read. */
  ended: () => void
  /** The stream broke; it is read again after a while. */
  failed: (error: Error) => void
}

const LONGEST = 30_000

export class LineStream {
  private abort = new AbortController()
  private retry: number | undefined
  private failures = 0
  private complete = false

  constructor(
    private readonly read: ReadLines,
    private readonly reader: LineReader,
  ) {}

  start() {
    document.addEventListener('visibilitychange', this.follow)
    this.follow()
  }

  stop() {
    document.removeEventListener('visibilitychange', this.follow)
    this.pause()
  }

  private pause() {
    this.abort.abort()
    window.clearTimeout(this.retry)
  }

  /** Reads while the page is visible: a browser has few connections for all of its tabs. */
  private follow = () => {
    this.pause()
    if (!document.hidden && !this.complete) void this.run()
  }

  private async run() {
    this.abort = new AbortController()
    const { signal } = this.abort
    let last = false
    try {
      await this.read(signal, (lines) => {
        if (signal.aborted) return
        this.failures = 0
        last = this.reader.take(lines) || last
      })
      if (!last) throw new Error('the stream broke')
      if (signal.aborted) return
      this.complete = true
      this.reader.ended()
    } catch (error) {
      if (signal.aborted) return
      this.reader.failed(error as Error)
      this.failures += 1
      this.retry = window.setTimeout(this.follow, Math.min(LONGEST, 1000 * 2 ** this.failures))
    }
  }
}
