// One event stream for all tabs. A browser opens six connections to a server over HTTP/1.1, so a stream in each tab would
// leave none for the seventh. The stream is open while a tab is visible, and each visible tab gets its events.

import { parseAlert, withAlert, type LiveAlerts } from './alerts'

/** Longest pause before the stream is opened again, in milliseconds. */
const LONGEST_PAUSE = 30_000
/** Pause before the stream is opened again where the browser gives up, in milliseconds. */
const REOPEN = 2_000
/** Time in milliseconds in which the active alerts arrive after the stream has opened. */
const FIRST_ALERTS = 400
/** Time for which the stream stays open without a visible tab, in milliseconds: a change of tabs does not close it. */
const GRACE = 3_000
/** Pause between two signs of life of a visible tab, in milliseconds. */
export const SIGN_OF_LIFE = 10_000
/** Silence after which a tab counts as gone, in milliseconds. */
const GONE = 60_000

export type EventName = 'revision' | 'status' | 'alert'
const NAMES: readonly EventName[] = ['revision', 'status', 'alert']

/** A message of a tab. */
export type ToHub = 'visible' | 'alive' | 'hidden'

/** A message to a tab. */
export type ToTab =
  { type: 'state'; open: boolean; alerts: LiveAlerts } | { type: 'event'; name: EventName; data: string }

/** A tab that gets events. */
export interface Tab {
  send: (message: ToTab) => void
}

type Timer = ReturnType<typeof setTimeout>

export class EventHub {
  /** Visible tabs, and when each gave its last sign of life. */
  private tabs = new Map<Tab, number>()
  private source: EventSource | null = null
  private open = false
  private alerts: LiveAlerts = { known: false, list: [] }
  private refusals = 0
  private reopening: Timer | undefined
  private closing: Timer | undefined
  private complete: Timer | undefined
  private sweeping: Timer | undefined

  receive(tab: Tab, message: ToHub) {
    if (message === 'hidden') {
      this.tabs.delete(tab)
      this.closeIfUnwatched()
      return
    }
    const known = this.tabs.has(tab)
    this.tabs.set(tab, Date.now())
    clearTimeout(this.closing)
    this.closing = undefined
    this.sweepLater()
    if (this.source === null && (message === 'visible' || !known || this.reopening === undefined)) {
      // A tab that comes back may have signed in meanwhile, so a refusal does not hold it up.
      this.refusals = 0
      this.connect()
    }
    // Each message is answered, so a tab knows that the hub is there.
    tab.send(this.state())
  }

  private state(): ToTab {
    return { type: 'state', open: this.open, alerts: this.alerts }
  }

  private publish(message: ToTab) {
    for (const tab of this.tabs.keys()) tab.send(message)
  }

  /** Opens the stream. The browser connects again by itself unless the daemon refuses. */
  private connect() {
    clearTimeout(this.reopening)
    this.reopening = undefined
    const source = new EventSource('/api/v1/events')
    this.source = source
    source.onopen = () => {
      this.open = true
      this.refusals = 0
      // The active alerts are sent again; those that ended meanwhile are not.
      this.alerts = { known: false, list: [] }
      this.publish(this.state())
      clearTimeout(this.complete)
      this.complete = setTimeout(() => {
        this.alerts = { known: true, list: this.alerts.list }
        this.publish(this.state())
      }, FIRST_ALERTS)
    }
    source.onerror = () => {
      const refused = source.readyState === source.CLOSED
      this.isClosed()
      if (!refused) return
      // A refusal is for good to a browser, such as one of a session that has just ended.
      this.source = null
      const pause = Math.min(LONGEST_PAUSE, REOPEN * 2 ** this.refusals)
      this.refusals = Math.min(this.refusals + 1, 5)
      this.reopening = setTimeout(() => {
        this.reopening = undefined
        if (this.tabs.size > 0) this.connect()
      }, pause)
    }
    for (const name of NAMES)
      source.addEventListener(name, (event) => {
        const { data } = event as MessageEvent<string>
        const alert = name === 'alert' ? parseAlert(data) : null
        if (alert) {
          this.alerts = { known: this.alerts.known, list: withAlert(this.alerts.list, alert) }
          this.publish(this.state())
        }
        this.publish({ type: 'event', name, data })
      })
  }

  private isClosed() {
    this.open = false
    clearTimeout(this.complete)
    this.alerts = { known: false, list: this.alerts.list }
    this.publish(this.state())
  }

  private closeIfUnwatched() {
    if (this.tabs.size > 0 || this.closing !== undefined) return
    this.closing = setTimeout(() => {
      this.closing = undefined
      clearTimeout(this.reopening)
      this.reopening = undefined
      this.source?.close()
      this.source = null
      this.isClosed()
    }, GRACE)
  }

  /** Forgets tabs that ended without a word. */
  private sweepLater() {
    this.sweeping ??= setTimeout(() => {
      this.sweeping = undefined
      for (const [tab, at] of this.tabs) if (Date.now() - at > GONE) this.tabs.delete(tab)
      this.closeIfUnwatched()
      if (this.tabs.size > 0) this.sweepLater()
    }, GONE)
  }
}
