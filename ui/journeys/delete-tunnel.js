// A tunnel that is used is not deleted by the way: the dialog names who loses it and what becomes of each, offers another
// tunnel in its place, and deletes without one only if that is said expressly.

import assert from 'node:assert/strict'
import { until } from './lib/daemon.js'
import { settled } from './lib/pages.js'

export default async function deletion({ daemon, open }) {
  const tunnel = async (name) => (await daemon.api('GET', '/tunnels')).find((each) => each.name === name)
  const policy = async (name) =>
    (await daemon.api('GET', '/routing/policies')).find((each) => each.name === name)
  const used = await tunnel('wg-a')
  const { page, watch, close } = await open({ path: `/paths/tunnels/${used.id}` })
  await settled(page)
  const dialog = page.locator('dialog[open]')
  const ask = async () => {
    await page.locator('.answer').getByRole('button', { name: 'Delete', exact: true }).click()
    await dialog.getByRole('link', { name: 'vpn-only' }).waitFor()
  }
  await ask()
  await dialog.getByText('is cut off: no other hop is left, and it fails closed.').waitFor()
  // Its name alone does not force it.
  await dialog.getByLabel('Type wg-a to confirm').fill('wg-a')
  await dialog.getByRole('button', { name: 'Delete', exact: true }).click()
  await dialog.locator('.err').waitFor()
  assert.ok(await tunnel('wg-a'), 'it is still there')
  // Another tunnel takes its place first.
  await dialog.getByLabel('Replace it by').selectOption({ label: 'wg-b' })
  await dialog.getByText('uses wg-b from then on.').first().waitFor()
  const force = dialog.getByRole('checkbox', { name: /^Delete it although/ })
  assert.equal(await force.isChecked(), false)
  await dialog.getByRole('button', { name: 'Delete', exact: true }).click()
  await until('the tunnel to be gone', async () => (await tunnel('wg-a')) === undefined)
  assert.deepEqual(
    (await policy('vpn-only')).hops.map(({ target }) => target),
    ['wg-b'],
  )
  watch.assertClean()
  await close()
}
