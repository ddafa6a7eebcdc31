// The daemon stops answering with the page open: after ten seconds nothing is green any more, the last data stays, and
// afterwards everything goes on by itself.

import assert from 'node:assert/strict'
import { until } from './lib/daemon.js'

export default async function stopped({ daemon, open }) {
  const { page, shot, close } = await open()
  const hue = () =>
    page.locator('main').evaluate((main) => main.ownerDocument.defaultView.getComputedStyle(main).filter)
  const chip = page.locator('.top .chip')
  await until('a verdict', async () => /OK|BLOCKED/.test(await chip.innerText()))
  const other = await open({ path: '/paths' })
  const menu = other.page.getByRole('button', { name: 'Actions: wg-b' }).first()
  await menu.waitFor()
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
    // An action that is chosen meanwhile is not done, and the page says so.
    await menu.click()
    await other.page.getByRole('menuitem', { name: /^Bring up|^Take down/ }).click()
    await other.page.locator('.toast').getByText('has not answered yet').waitFor()
  } finally {
    daemon.resume()
  }
  await until('a verdict again', async () => /OK|BLOCKED/.test(await chip.innerText()), 60_000)
  await until('the hue again', async () => (await hue()) === 'none')
  await other.page.locator('.toast').getByText('has not answered yet').waitFor({ state: 'detached' })
  await other.close()
  await close()
}
