// Policies move to a position that is typed, as a block of several selected ones, and by Alt+Up; the row that moves keeps
// the focus, and what is shown is what is stored.

import assert from 'node:assert/strict'
import { until } from './lib/daemon.js'
import { Keys } from './lib/keys.js'
import { settled } from './lib/pages.js'

export default async function positions({ daemon, open }) {
  for (const [at, name] of ['third', 'fourth', 'fifth'].entries())
    await daemon.api('POST', '/routing/policies', {
      name,
      priority: 30 + 10 * at,
      enabled: true,
      source_type: 'destination',
      source_value: `203.0.113.${at + 1}`,
      hops: [{ type: 'vpn', target: 'wg-a' }],
      fail_policy: 'fail-closed',
    })
  const { page, watch, close } = await open({ path: '/policies' })
  const keys = new Keys(page)
  await settled(page)
  const [first, second, ...rest] = await names(daemon)
  assert.deepEqual(rest, ['third', 'fourth', 'fifth'])
  const table = page.locator('table.policies')
  const row = (name) => table.getByRole('row').filter({ has: page.getByRole('link', { name, exact: true }) })
  const shown = () => table.locator('tbody .named a').allInnerTexts()
  const order = async (...expected) => {
    await until(
      `the order ${expected.join(', ')}`,
      async () => (await names(daemon)).join() === expected.join(),
    )
    await until('the order on the page', async () => (await shown()).join() === expected.join())
    await page.locator('table.policies[aria-busy="false"]').waitFor()
  }
  const dialog = page.getByRole('dialog')

  // To a position, from the menu of the row; the dialog says which priorities that changes.
  await page.getByRole('button', { name: 'More for fifth' }).click()
  await page.getByRole('menuitem', { name: 'Move to position…' }).click()
  const position = dialog.getByLabel('Position, 1 to 5')
  assert.equal(await position.inputValue(), '5')
  await dialog.getByText('Nothing changes.').waitFor()
  await position.fill('2')
  await dialog.getByText(/Priorities: fifth \d+/).waitFor()
  await dialog.getByRole('button', { name: 'Move', exact: true }).click()
  await order(first, 'fifth', second, 'third', 'fourth')

  // Two that are apart become a block, which keeps their order.
  await page.getByRole('button', { name: 'Select', exact: true }).click()
  await page.getByLabel(`Select ${first}`, { exact: true }).check()
  await page.getByLabel('Select third', { exact: true }).check()
  const group = page.getByRole('group', { name: '2 selected' })
  await group.getByRole('button', { name: 'Move to position…' }).click()
  await dialog.getByLabel('Position, 1 to 4').fill('3')
  await dialog.getByRole('button', { name: 'Move', exact: true }).click()
  await order('fifth', second, first, 'third', 'fourth')
  await group.getByRole('button', { name: 'Down' }).click()
  await order('fifth', second, 'fourth', first, 'third')
  // At the end it stays.
  await group.getByRole('button', { name: 'Down' }).click()
  await order('fifth', second, 'fourth', first, 'third')
  await group.getByRole('button', { name: 'Up' }).click()
  await order('fifth', second, first, 'third', 'fourth')
  // The keys of a row that is selected move the block as well.
  await row('third').focus()
  await keys.press('Alt+ArrowUp')
  await order('fifth', first, 'third', second, 'fourth')
  await page.getByRole('button', { name: 'Done', exact: true }).click()

  // One row by keys, again and again: the focus goes along.
  await keys.reach(/^TR .*fourth/s)
  await keys.press('Alt+ArrowUp')
  await order('fifth', first, 'third', 'fourth', second)
  assert.equal((await keys.look()).problem, '')
  assert.match(await page.evaluate(() => document.activeElement.innerText), /fourth/)
  await keys.press('Alt+ArrowUp')
  await order('fifth', first, 'fourth', 'third', second)
  await keys.press('Alt+ArrowDown')
  await order('fifth', first, 'third', 'fourth', second)
  await row('fifth').focus()
  await keys.press('Alt+ArrowUp')
  await order('fifth', first, 'third', 'fourth', second)

  // Nothing of it is active yet.
  assert.equal((await daemon.api('GET', '/status')).pending_changes, true)
  watch.assertClean()
  await close()
}

async function names(daemon) {
  const policies = await daemon.api('GET', '/routing/policies')
  return policies.sort((one, other) => one.priority - other.priority).map(({ name }) => name)
}
