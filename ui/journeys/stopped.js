// The daemon stops answering with the page open: within half a minute nothing is green any more, the last data stays, and
// afterwards everything goes on by itself.

import assert from 'node:assert/strict'
import { until } from './lib/daemon.js'

export default async function stopped({ daemon, open }) {
  const { page, shot, close } = await open()
  const hue = () =>
    page.locator('main').evaluate((main) => main.ownerDocument.defaultView.getComputedStyle(main).filter)
  const chip = page.locator('.top .chip')
  await until('a verdict', async () => /OK|BLOCKED/.test(await chip.innerText()))
  daemon.pause()
  try {
    await until('UNKNOWN', async () => /UNKNOWN/.test(await chip.innerText()), 45_000)
    assert.equal(await page.locator('.chip--ok, .v-ok').count(), 0)
    assert.match(await chip.getAttribute('class'), /chip--unknown/)
    await page.locator('.banner--unknown').waitFor()
    // Panels keep their states, in words and shapes; the hue goes from the whole page at once.
    assert.equal(await hue(), 'saturate(0)')
    await shot('overview-stopped')
    assert.ok((await page.locator('main').innerText()).length > 50, 'the last data stays')
  } finally {
    daemon.resume()
  }
  await until('a verdict again', async () => /OK|BLOCKED/.test(await chip.innerText()), 60_000)
  await until('the hue again', async () => (await hue()) === 'none')
  await close()
}
