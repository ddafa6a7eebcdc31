// A gateway with two probed uplinks, a device that leaves by a tunnel and one that a policy lets out directly: the overview
// shows what the probes measured, which uplink is active, and the direct edge to it, also after the first line failed.

import assert from 'node:assert/strict'
import { until } from './lib/daemon.js'
import { settled } from './lib/pages.js'

const VARIANTS = [
  { theme: 'light', width: 1440 },
  { theme: 'dark', width: 1440 },
  { theme: 'light', width: 360, height: 740 },
  { theme: 'dark', width: 360, height: 740, language: 'de' },
]

export default async function uplinks({ daemon, context, open }) {
  const health = async (name) =>
    (await daemon.api('GET', '/system/wan-health')).find((each) => each.uplink === name)
  await until('both uplinks to be measured', async () => {
    const both = [await health('fibre'), await health('cable')]
    return both.every((each) => each.state === 'online' && each.latency_ms !== null)
  })
  for (const variant of VARIANTS) {
    const { page, watch, close } = await open(variant)
    await settled(page)
    const { theme, width } = variant
    await page.locator('.wan.band').nth(1).waitFor()
    await page.screenshot({ path: `${context.artefacts}/uplinks-${width}-${theme}.png`, fullPage: true })
    const over = await page.evaluate(
      () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
    )
    assert.equal(over, 0)
    watch.assertClean()
    await close()
  }

  const { page, watch, close } = await open()
  await settled(page)
  const strip = page.getByRole('region', { name: 'Uplinks' })
  const said = (name) => strip.getByRole('listitem').filter({ hasText: name }).innerText()
  for (const name of ['fibre', 'cable']) assert.match(await said(name), /\d+ ms, 0 % loss/)
  assert.match(await said('fibre'), /Active since \d+:\d+/)
  assert.match(await said('cable'), /Standby/)

  // The graph draws the way of the tv past all hops, and the table says the same.
  const graph = page.getByRole('group', { name: /1 .*direct/ })
  await graph.locator('.line.e-direct').nth(1).waitFor()
  await graph.getByText('no hop, direct').waitFor()
  await page.getByRole('button', { name: 'Show as table' }).first().click()
  const row = (name) =>
    page
      .getByRole('row')
      .filter({ has: page.getByRole('link', { name, exact: true }) })
      .first()
  assert.match(await row('20 tv-direct').innerText(), /tv\s+Direct\s+-\s+fibre/)
  assert.match(await row('10 vpn-only').innerText(), /laptop\s+wg-a\s+wg-a\s+fibre/)

  // The cable of the first line is pulled: what left by it leaves by the other one.
  await daemon.on('internet', 'ip', 'link', 'set', 'up0', 'down')
  await until('fibre to be offline', async () => /Offline/.test(await said('fibre')), 60_000)
  await until('cable to be active', async () => /Active since/.test(await said('cable')), 60_000)
  // Its strip does not stay as it was.
  const bands = strip.getByRole('listitem').filter({ hasText: 'fibre' }).locator('.band rect')
  await until('the end of the strip', async () => (await bands.last().getAttribute('class')) === 'seg-off')
  await strip.getByText(/Last decision.*link of fibre is down/).waitFor()
  await until('the direct way by cable', async () =>
    /Direct\s+-\s+cable/.test(await row('20 tv-direct').innerText()),
  )
  await page.screenshot({ path: `${context.artefacts}/uplinks-failed-over.png`, fullPage: true })
  watch.assertClean()
  await close()
}
