// The order of the policies by mouse, by keys and by buttons; then a change is applied, undone, applied again and kept.

import assert from 'node:assert/strict'
import { until } from './lib/daemon.js'
import { settled } from './lib/pages.js'

export default async function order({ daemon, open }) {
  const { page, watch, close } = await open({ path: '/policies' })
  await settled(page)
  const [first, second] = await names(daemon)
  const table = page.locator('table.policies')
  const row = (name) => table.getByRole('row').filter({ has: page.getByRole('link', { name, exact: true }) })
  const stored = (...expected) =>
    until(`the order ${expected.join(', ')}`, async () => {
      const found = await names(daemon)
      // The next move waits for the end of this one.
      if (found.join() !== expected.join()) return undefined
      const busy = table.and(page.locator('[aria-busy="true"]'))
      return (await busy.count()) === 0
    })

  await drag(page, page.getByRole('button', { name: `Drag ${second}` }), row(first))
  await stored(second, first)
  await row(second).focus()
  await page.keyboard.press('Alt+ArrowDown')
  await stored(first, second)
  await page.getByRole('button', { name: `Move ${first} down` }).click()
  await stored(second, first)

  // What is stored is not applied: the bar says so on every page.
  const status = () => daemon.api('GET', '/status')
  assert.equal((await status()).pending_changes, true)
  await page.getByRole('link', { name: 'Devices' }).first().click()
  await settled(page)
  const applySafely = async () => {
    await page.getByRole('button', { name: 'Review' }).click()
    await page.getByRole('button', { name: 'Apply with snapshot' }).click()
    await page.getByText(/undoes itself in/).waitFor()
    assert.notEqual((await status()).pending_confirm_until, null)
  }
  await applySafely()
  await page.getByRole('button', { name: 'Undo now' }).click()
  await until('the end of the undone change', async () => (await status()).pending_confirm_until === null)
  await page.getByText(/undoes itself in/).waitFor({ state: 'hidden' })
  if ((await names(daemon))[0] === first) {
    await page.goto('/policies')
    await settled(page)
    await page.getByRole('button', { name: `Move ${first} down` }).click()
    await stored(second, first)
  }
  await applySafely()
  await page.getByRole('button', { name: 'Keep', exact: true }).click()
  await until('the change to be kept', async () => {
    const { pending_confirm_until: until, pending_changes: pending } = await status()
    return until === null && pending === false
  })
  await stored(second, first)
  watch.assertClean()
  await close()
}

async function names(daemon) {
  const policies = await daemon.api('GET', '/routing/policies')
  return policies.sort((one, other) => one.priority - other.priority).map(({ name }) => name)
}

/** Drags a grip to the upper edge of a row. */
async function drag(page, grip, row) {
  const from = await grip.boundingBox()
  const to = await row.boundingBox()
  await page.mouse.move(from.x + from.width / 2, from.y + from.height / 2)
  await page.mouse.down()
  await page.mouse.move(to.x + 40, to.y + to.height / 2, { steps: 5 })
  await page.mouse.move(to.x + 40, to.y + 2, { steps: 5 })
  await page.mouse.up()
}
