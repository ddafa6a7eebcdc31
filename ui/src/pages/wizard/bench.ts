// The proof at a real gateway. A mark in the browser names the tunnel that is pulled, so that it comes back even if the
// page is closed in the middle.

import { call, client } from '@/api/client'
import { session } from '@/api/session'
import type { Bench } from './proof'

const MARK = 'gateway.setup.pulled'

/** Brings up a tunnel that an interrupted proof left down. Reports whether there was one. */
export async function restoreInterrupted(): Promise<boolean> {
  const id = localStorage.getItem(MARK)
  if (!id) return false
  await call(client.POST('/tunnels/{id}/up', { params: { path: { id } } }))
  localStorage.removeItem(MARK)
  return true
}

/** Sends the request that brings the tunnel up, while the page goes away. The mark stays until a page sees the answer. */
export function restoreOnLeave() {
  const id = localStorage.getItem(MARK)
  if (!id) return
  void fetch(`/api/v1/tunnels/${encodeURIComponent(id)}/up`, {
    method: 'POST',
    keepalive: true,
    headers: session.csrf ? { 'X-CSRF-Token': session.csrf } : {},
  })
}

export interface Subject {
  tunnel: string
  device: string
  policy: string | null
}

export function benchOf({ tunnel, device, policy }: Subject): Bench {
  const path = { params: { path: { id: tunnel } } }
  return {
    sample: async () => {
      const [state, monitor, matched] = await Promise.all([
        call(client.GET('/tunnels/{id}', path)),
        call(client.GET('/privacy/leak-monitor')),
        policy ? call(client.GET('/routing/policies/{id}', { params: { path: { id: policy } } })) : null,
      ])
      const { since, counters } = monitor.data
      return {
        packets: matched?.data.hits?.packets ?? null,
        bytes: state.data.tx_bytes ?? null,
        escaped: since === null ? null : counters.reduce((sum, each) => sum + each.escaped_packets, 0),
      }
    },
    down: async () => {
      localStorage.setItem(MARK, tunnel)
      await call(client.POST('/tunnels/{id}/down', path))
    },
    up: async () => {
      await call(client.POST('/tunnels/{id}/up', path))
      localStorage.removeItem(MARK)
    },
    works: async () => {
      const { data } = await call(client.GET('/tunnels/{id}', path))
      return data.status === 'up' && data.healthy !== false
    },
    leakCheck: async () =>
      (await call(client.POST('/privacy/leak-check', { body: { device_id: device } }))).data,
    wait: (ms) => new Promise((resolve) => window.setTimeout(resolve, ms)),
    now: () => performance.now(),
  }
}
