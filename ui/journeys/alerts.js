// A tunnel goes down: the bell counts it, the inbox has it with its consequence below it, and it is acknowledged,
// muted and resolved.

import assert from 'node:assert/strict'
import { violations } from './lib/axe.js'
import { until } from './lib/daemon.js'
import { settled } from './lib/pages.js'

/** Address of the remote end of the tunnel `wg-a`. */
const REMOTE = '198.51.100.7/32'
/** Time for a tunnel to be known as down, with some reserve. */
const DETECTION = 180_000

export default async function alerts({ daemon, open }) {
  const { page, watch, shot, close } = await open()
  await settled(page)
  const active = (kind) =>
    daemon.api('GET', '/alerts/active').then((all) => all.filter((each) => each.kind === kind))
  // A policy that blocks is an alert at once, not after half a minute.
  const rule = (await daemon.api('GET', '/alerts/rules')).find(({ id }) => id === 'policy_blocked')
  await daemon.api('PUT', '/alerts/rules/policy_blocked', { ...rule, window_sec: 1 })
  await daemon.on('internet', 'ip', 'route', 'add', 'blackhole', REMOTE)
  const tunnel = await until(
    'the tunnel to be down',
    async () => {
      // A tunnel without traffic is not known to be down for minutes.
      await daemon.on('laptop', 'ping', '-c', '3', '-i', '0.2', '-W', '1', '198.18.0.1')
      return (await active('tunnel_down'))[0]
    },
    DETECTION,
  )
  const blocked = await until(
    'its consequence',
    async () => (await active('policy_blocked')).find((each) => each.caused_by === tunnel.id),
    DETECTION,
  )

  // The bell counts the causes, and leads to the inbox.
  const bell = page.locator('.top a.icobtn')
  await until('the bell', async () => {
    const all = await daemon.api('GET', '/alerts/active')
    const ids = all.map(({ id }) => id)
    const causes = all.filter((each) => !ids.includes(each.caused_by)).length
    return (await bell.getAttribute('aria-label')).includes(String(causes))
  })
  await bell.click()
  await settled(page)
  const inbox = page.getByRole('region', { name: 'Open', exact: true })
  const row = inbox.locator('.rows--alert > li').filter({ hasText: 'Tunnel down: wg-a' })
  await row.getByText('1 consequence').click()
  await row.getByText('Policy blocks: vpn-only').waitFor()
  await row.getByRole('link', { name: 'Tunnel down: wg-a' }).waitFor()
  assert.equal(await inbox.getByText('Policy blocks: vpn-only').count(), 1, 'it has no row of its own')
  await shot('alerts-tunnel-down')
  assert.deepEqual(await violations(page), [])

  await row.getByRole('button', { name: 'Acknowledge' }).click()
  await row.getByText('Acknowledged by').waitFor()
  assert.equal((await active('tunnel_down'))[0]?.status, 'acknowledged')

  await row.getByRole('button', { name: 'Mute', exact: true }).click()
  await page.getByRole('menuitem', { name: 'for 8 h' }).click()
  await row.getByText(/Muted by .* until/).waitFor()
  const [muted] = await active('tunnel_down')
  assert.ok(Date.parse(muted.muted_until) > Date.now() + 7 * 3_600_000, muted.muted_until)
  await row.getByRole('button', { name: 'Unmute' }).click()
  await row.getByRole('button', { name: 'Mute', exact: true }).waitFor()
  assert.equal((await active('tunnel_down'))[0]?.muted_until, null)

  await row.getByRole('button', { name: 'Resolve' }).click()
  await until('no row', async () => (await row.count()) === 0)
  const resolved = page.getByRole('table', { name: 'Resolved' }).getByRole('row')
  await resolved.filter({ hasText: 'Tunnel down: wg-a' }).first().waitFor()
  assert.ok((await active('tunnel_down')).every((each) => each.id !== tunnel.id))
  // What it explained stands for itself now, or is over.
  await until('the consequence', async () => {
    const own = (await active('policy_blocked')).some((each) => each.id === blocked.id)
    return (
      (await inbox.locator('.rows--alert > li').filter({ hasText: 'Policy blocks: vpn-only' }).count()) ===
      Number(own)
    )
  })

  // The rules say in words what they mean, and when they fired last.
  await page.goto('/activity/alert-rules')
  await settled(page)
  const said = page.getByRole('row').filter({ hasText: 'A tunnel that should be up is down.' })
  await said.getByText(/ago/).waitFor()
  await daemon.on('internet', 'ip', 'route', 'del', 'blackhole', REMOTE)
  watch.assertClean()
  await close()
}
