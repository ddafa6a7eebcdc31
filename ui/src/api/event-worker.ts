// The event stream that the tabs of a browser share.

import { EventHub, type Tab, type ToHub } from './event-hub'

const scope = self as unknown as { onconnect: ((event: MessageEvent) => void) | null }
const hub = new EventHub()

scope.onconnect = ({ ports }) => {
  const port = ports[0]
  if (!port) return
  const tab: Tab = { send: (message) => port.postMessage(message) }
  port.onmessage = ({ data }: MessageEvent<ToHub>) => hub.receive(tab, data)
}
